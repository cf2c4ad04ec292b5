/**
 * @module Passes the bytes of a connection to Node's HTTP parser in pieces that end where a head or a body ends (RFC 9112). Node.js
 * would parse all requests of a packet at once: up to 3000, each with a response in memory. Node's parser checks the syntax.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { serviceError } from '../errors.ts';
import type { Exchange } from './raw-error-response.ts';

/** Reads the requests of one connection. */
export type RequestReader = ReturnType<typeof readRequests>;

/**
 * Maximum number of requests of a connection without a response. Requests after the first wait until the response before
 * them has been sent.
 */
const MAX_UNANSWERED = 4;

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
 *
 * @param exchanges the requests of the connection without a complete response
 * @param onError receives the error of a body whose framing costs too much
 */
export function readRequests(
  socket: Socket,
  exchanges: readonly Pick<Exchange, 'start'>[],
  onError: (error: Error) => void,
) {
  const head = new LinesReader(false);
  /** Received bytes that the parser does not have yet. */
  let held: Buffer = Buffer.alloc(0);
  /** The request whose body is being received. */
  let receiving: { readonly req: IncomingMessage; readonly body: MessageReader } | undefined;
  let hasEnded = false;
  let ending: NodeJS.Timeout | undefined;
  let isStopped = false;

  const read = (): void => {
    try {
      while (held.length > 0 && !socket.isPaused()) {
        if (!receiving && exchanges.length >= MAX_UNANSWERED) {
          socket.pause();
          break;
        }
        const { length, bytes } = (receiving?.body ?? head).read(held);
        held = held.subarray(length);
        parse(bytes);
        if (receiving?.req.complete) receiving = undefined;
      }
    } catch (error) {
      onError(error as Error);
    }
    // The server's listener ends the connection. Requests that are held come first.
    if (!hasEnded || held.length > 0 || exchanges.some(({ start }) => start)) return;
    if (exchanges.length === 0 || receiving?.req.complete === false) end();
    else ending ??= setTimeout(end, HALF_CLOSED_MS).unref();
  };
  const end = (): void => {
    clearTimeout(ending);
    hasEnded = false;
    if (!isStopped) parseEnd();
  };
  /** Discards everything that follows, because it is not HTTP. Returns the request whose body was being received. */
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
    /** Notes that the parser has received the head of a request. */
    begin(req: IncomingMessage): void {
      const { 'transfer-encoding': coding, 'content-length': length } = req.headers;
      const body = coding === undefined ? readSizedBody(Number(length)) : new ChunkedBodyReader();
      receiving = { req, body };
    },
    /** Whether the parser does not have all received bytes yet. */
    isHolding: (): boolean => held.length > 0,
    /** Continues to read. Call this when a request has started or ended. */
    resume(): void {
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

/** Finds the end of a part of a message. */
interface MessageReader {
  /** Reads the bytes that belong to the part: all of them if its end follows later. */
  read(bytes: Buffer): Piece;
}

interface Piece {
  /** Number of bytes that were read. */
  readonly length: number;
  /** What Node's parser receives in their place: the same bytes, except that chunks are merged. */
  readonly bytes: Buffer;
}

const CR = 0x0d;
const LF = 0x0a;

const firstBytes = (bytes: Buffer, length: number): Piece => ({ length, bytes: bytes.subarray(0, length) });

/** Finds the empty line that ends lines of text. */
class LinesReader implements MessageReader {
  #hasLines: boolean;
  #lineIsEmpty = true;

  /** @param mayBeEmpty whether an empty line at the start is the end. Otherwise it is ignored. */
  constructor(mayBeEmpty: boolean) {
    this.#hasLines = mayBeEmpty;
  }

  read(bytes: Buffer): Piece {
    for (let at = 0; at < bytes.length; at += 1) {
      if (bytes[at] !== LF) {
        if (bytes[at] !== CR) this.#lineIsEmpty = false;
      } else if (!this.#lineIsEmpty) {
        this.#hasLines = true;
        this.#lineIsEmpty = true;
      } else if (this.#hasLines) {
        this.#hasLines = false;
        return firstBytes(bytes, at + 1);
      }
    }
    return firstBytes(bytes, bytes.length);
  }
}

/** Finds the end of a body with `Content-Length`. */
function readSizedBody(total: number): MessageReader {
  let missing = total;
  return {
    read(bytes) {
      const length = Math.min(missing, bytes.length) || bytes.length;
      missing -= length;
      return firstBytes(bytes, length);
    },
  };
}

/** Number of chunks of a body that may be small. Programs that write a form in small pieces send fewer. */
const MAX_SMALL_CHUNKS = 2000;
/** Minimum mean size of the chunks of a body, in bytes. */
export const MIN_MEAN_CHUNK_BYTES = 64;
/**
 * Minimum mean size of chunks that are not merged, in bytes. Each passes through all streams of an upload alone, which takes
 * up to 3 µs of processor time.
 */
const MIN_MEAN_UNMERGED_BYTES = 1024;

/**
 * Finds the end of a body with `Transfer-Encoding: chunked` (RFC 9112, section 7.1), limits the number of its chunks, and
 * merges chunks that arrive together. Merging ends at a chunk with an extension or with an unusual size, so that only chunks
 * that every parser reads in the same way are merged.
 */
class ChunkedBodyReader implements MessageReader {
  /** Bytes of the current chunk and its line break that still follow. */
  #missing = 0;
  /** Size of the next chunk, and the length of its line, as far as they have been read. */
  #size = 0;
  #lineLength = 0;
  #sizeHasEnded = false;
  #trailer: LinesReader | undefined;
  #mayMerge = true;
  #chunks = 0;
  /** Bytes of the chunks, and the minimum for their number. */
  readonly #all = { bytes: 0, minimum: 0 };
  /** The same for the chunks after the first {@link MAX_SMALL_CHUNKS}. */
  readonly #later = { bytes: 0, minimum: 0 };

  /** @throws {ServiceError} CHUNKS_TOO_SMALL */
  read(bytes: Buffer): Piece {
    const pieces: Buffer[] = [];
    let copied = 0;
    let at = 0;
    while (at < bytes.length && !this.#trailer) {
      const startsChunk = this.#missing === 0 && this.#lineLength === 0;
      const whole = startsChunk && this.#mayMerge ? wholeChunksAt(bytes, at) : undefined;
      if (whole) {
        for (const { length } of whole.data) this.#limitChunks(length);
        pieces.push(bytes.subarray(copied, at), mergeChunks(whole.data));
        at = whole.end;
        copied = at;
      } else if (this.#missing > 0) {
        const length = Math.min(this.#missing, bytes.length - at);
        this.#missing -= length;
        at += length;
      } else {
        this.#readLine(bytes[at] as number);
        at += 1;
      }
    }
    const length = at + (this.#trailer?.read(bytes.subarray(at)).length ?? 0);
    const rest = bytes.subarray(copied, length);
    return { length, bytes: pieces.length > 0 ? Buffer.concat([...pieces, rest]) : rest };
  }

  /** Reads one character of a chunk's line: hexadecimal digits, then extensions, which are ignored. */
  #readLine(byte: number): void {
    if (byte === LF) {
      this.#startChunk();
      return;
    }
    this.#lineLength += 1;
    const digit = hexDigit(byte);
    if (digit === undefined) this.#sizeHasEnded = true;
    if (digit !== undefined && !this.#sizeHasEnded) this.#size = this.#size * 16 + digit;
    const isPlain = digit === undefined ? byte === CR : this.#lineLength <= MAX_SIZE_DIGITS;
    if (!isPlain) this.#mayMerge = false;
  }

  #startChunk(): void {
    const size = this.#size;
    this.#size = 0;
    this.#lineLength = 0;
    this.#sizeHasEnded = false;
    if (size === 0) {
      this.#trailer = new LinesReader(true);
      return;
    }
    this.#missing = size + 2;
    this.#limitChunks(size);
  }

  /** Counts a chunk. The last chunk of a body may have any size, so each counts when the next one follows. */
  #limitChunks(bytes: number): void {
    const minimum = this.#mayMerge ? MIN_MEAN_CHUNK_BYTES : MIN_MEAN_UNMERGED_BYTES;
    const isSmall = [this.#all, this.#later].every((sum) => sum.bytes < sum.minimum);
    if (isSmall) throw serviceError('CHUNKS_TOO_SMALL', minimum);
    for (const sum of this.#chunks < MAX_SMALL_CHUNKS ? [this.#all] : [this.#all, this.#later]) {
      sum.bytes += bytes;
      sum.minimum += minimum;
    }
    this.#chunks += 1;
  }
}

/** Maximum number of digits of the size of a chunk that is merged. Other parsers may limit the digits, too. */
const MAX_SIZE_DIGITS = 8;

/**
 * Returns the data of the consecutive chunks from this position that are complete in `bytes`, and where they end. Each is a
 * size of 1 to {@link MAX_SIZE_DIGITS} hexadecimal digits, CR LF, the data, and CR LF. Returns undefined if there is at most
 * one.
 */
function wholeChunksAt(
  bytes: Buffer,
  start: number,
): { readonly data: readonly Buffer[]; readonly end: number } | undefined {
  const data: Buffer[] = [];
  let end = start;
  while (true) {
    let size = 0;
    let at = end;
    for (; at - end < MAX_SIZE_DIGITS; at += 1) {
      const digit = hexDigit(bytes[at]);
      if (digit === undefined) break;
      size = size * 16 + digit;
    }
    const dataEnd = at + 2 + size;
    if (size === 0 || !isLineBreak(bytes, at) || !isLineBreak(bytes, dataEnd)) break;
    data.push(bytes.subarray(at + 2, dataEnd));
    end = dataEnd + 2;
  }
  return data.length > 1 ? { data, end } : undefined;
}

const isLineBreak = (bytes: Buffer, at: number): boolean => bytes[at] === CR && bytes[at + 1] === LF;

function hexDigit(byte = 0): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined;
}

/** Formats one chunk with the data of several. */
function mergeChunks(data: readonly Buffer[]): Buffer {
  const size = data.reduce((sum, { length }) => sum + length, 0);
  return Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), ...data, Buffer.from('\r\n')]);
}
