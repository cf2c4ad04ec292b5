/**
 * @module Passes the bytes of a connection to Node's HTTP parser in pieces that end where a request ends. Node.js would
 * parse all requests of a packet at once: up to 3000, each with a response in memory.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createBodyReader, LinesReader, type MessageReader } from './message-framing.ts';

/** Reads the requests of one connection. */
export interface RequestReader {
  /** Notes that the parser has received the head of a request. */
  begin(req: IncomingMessage): void;
  /** Whether the parser does not have all received bytes yet. */
  isHolding(): boolean;
  /** Continues to read. Call this when a request has started or ended. */
  resume(): void;
  /**
   * Discards everything that follows, because it is not HTTP.
   *
   * @returns the request whose body was being received
   */
  stop(): IncomingMessage | undefined;
}

/** What a {@link RequestReader} asks about its connection. */
export interface ReaderOptions {
  /** Whether one more request may be received now. Otherwise, reading from the socket pauses. */
  readonly hasRoom: () => boolean;
  /** Whether a received request has not started yet, because an earlier one has no response. */
  readonly isWaiting: () => boolean;
  /** Whether all requests have a complete response. */
  readonly isIdle: () => boolean;
  /** Receives the error of a body whose framing costs too much. */
  readonly onError: (error: Error) => void;
}

/**
 * Time for the response to the last request of a client that has closed its side of the connection, in milliseconds. Such a
 * client can still read, or be gone: then, its conversion is aborted.
 */
const HALF_CLOSED_MS = 100;

/**
 * Reads the requests of a connection. Call this in a listener for `connection` of the HTTP server.
 *
 * The reader takes the place of the server's listeners for `data` and `end`, and calls them. Node's parser alone decides
 * what is valid HTTP. The reader only finds where a request can end.
 */
export function readRequests(socket: Socket, options: ReaderOptions): RequestReader {
  const { hasRoom, isWaiting, isIdle, onError } = options;
  const head = new LinesReader(false);
  /** Received bytes that the parser does not have yet. */
  let held: Buffer = Buffer.alloc(0);
  /** The request whose body is being received. */
  let receiving: { readonly req: IncomingMessage; readonly body: MessageReader } | undefined;
  let hasEnded = false;
  let ending: NodeJS.Timeout | undefined;
  let isStopped = false;

  const passPiece = (): void => {
    const { length, bytes } = (receiving?.body ?? head).read(held);
    held = held.subarray(length);
    parse(bytes);
    if (receiving?.req.complete) receiving = undefined;
  };
  const read = (): void => {
    try {
      while (held.length > 0 && !socket.isPaused()) {
        if (receiving || hasRoom()) passPiece();
        else socket.pause();
      }
    } catch (error) {
      onError(error as Error);
    }
    // The server's listener ends the connection. Requests that are held come first.
    if (!hasEnded || held.length > 0 || isWaiting()) return;
    if (isIdle() || receiving?.req.complete === false) end();
    else ending ??= setTimeout(end, HALF_CLOSED_MS).unref();
  };
  const end = (): void => {
    clearTimeout(ending);
    hasEnded = false;
    if (!isStopped) parseEnd();
  };
  const stop = (): IncomingMessage | undefined => {
    isStopped = true;
    held = Buffer.alloc(0);
    return receiving?.req.complete ? undefined : receiving?.req;
  };

  const parse = replaceLastListener(socket, 'data', (chunk) => {
    if (isStopped) return;
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    read();
  });
  const parseEnd = replaceLastListener(socket, 'end', () => {
    hasEnded = true;
    read();
  });
  socket.on('resume', read);
  socket.once('close', stop);
  return {
    begin(req) {
      receiving = { req, body: createBodyReader(req.headers) };
    },
    isHolding: () => held.length > 0,
    resume() {
      if (socket.isPaused()) socket.resume();
      else read();
    },
    stop,
  };
}

/** Replaces the last listener for an event, and returns a function that calls it. */
function replaceLastListener(
  socket: Socket,
  event: 'data' | 'end',
  listener: (chunk: Buffer) => void,
): (chunk?: Buffer) => void {
  const last = socket.listeners(event).at(-1) as (chunk?: Buffer) => void;
  socket.on(event, listener);
  socket.off(event, last);
  return last;
}
