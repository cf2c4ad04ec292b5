/** @module Finds where the head and the body of a request end (RFC 9112). Node's parser checks the syntax. */
import type { IncomingHttpHeaders } from 'node:http';
import { serviceError } from '../errors.ts';

/** Finds the end of a part of a message. */
export interface MessageReader {
  /** Returns how many of these bytes belong to the part: all of them if its end follows later. */
  advance(bytes: Buffer): number;
}

const CR = 0x0d;
const LF = 0x0a;

/** Finds the empty line that ends lines of text. */
export class LinesReader implements MessageReader {
  #hasLines: boolean;
  #lineIsEmpty = true;

  /** @param mayBeEmpty whether an empty line at the start is the end. Otherwise it is ignored. */
  constructor(mayBeEmpty: boolean) {
    this.#hasLines = mayBeEmpty;
  }

  advance(bytes: Buffer): number {
    for (let at = 0; at < bytes.length; at += 1) {
      if (bytes[at] !== LF) {
        if (bytes[at] !== CR) this.#lineIsEmpty = false;
      } else if (!this.#lineIsEmpty) {
        this.#hasLines = true;
        this.#lineIsEmpty = true;
      } else if (this.#hasLines) {
        this.#hasLines = false;
        return at + 1;
      }
    }
    return bytes.length;
  }
}

/** Creates the reader for the body of a request with these headers. */
export function createBodyReader(headers: IncomingHttpHeaders): MessageReader {
  return headers['transfer-encoding'] === undefined
    ? new SizedBodyReader(Number(headers['content-length']))
    : new ChunkedBodyReader();
}

/** Finds the end of a body with `Content-Length`. */
class SizedBodyReader implements MessageReader {
  #missing: number;

  constructor(length: number) {
    this.#missing = length;
  }

  advance(bytes: Buffer): number {
    const length = Math.min(this.#missing, bytes.length) || bytes.length;
    this.#missing -= length;
    return length;
  }
}

/** Number of chunks of a body that may be small. Programs that write a form in small pieces send fewer. */
const MAX_SMALL_CHUNKS = 2000;
/**
 * Minimum mean size of the chunks of a body, in bytes. Each chunk costs about 1 µs of processor time, which is as much as
 * 2 kB in a large chunk.
 */
export const MIN_MEAN_CHUNK_BYTES = 64;

/** Finds the end of a body with `Transfer-Encoding: chunked` (RFC 9112, section 7.1), and limits the number of its chunks. */
class ChunkedBodyReader implements MessageReader {
  /** Bytes of the current chunk and its line break that still follow. */
  #missing = 0;
  /** Size of the next chunk, as far as its line has been read. */
  #size = 0;
  #sizeHasEnded = false;
  #trailer: LinesReader | undefined;
  #chunks = 0;
  #bytes = 0;
  /** Bytes of the chunks after the first {@link MAX_SMALL_CHUNKS}. */
  #laterBytes = 0;

  /** @throws {ServiceError} CHUNKS_TOO_SMALL */
  advance(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && !this.#trailer) {
      if (this.#missing > 0) {
        const length = Math.min(this.#missing, bytes.length - at);
        this.#missing -= length;
        at += length;
        continue;
      }
      const byte = bytes[at] as number;
      at += 1;
      if (byte === LF) this.#startChunk();
      else this.#readSize(byte);
    }
    return this.#trailer ? at + this.#trailer.advance(bytes.subarray(at)) : at;
  }

  /** Reads one character of a chunk's line: hexadecimal digits, then extensions, which are ignored. */
  #readSize(byte: number): void {
    const digit = byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
    if (digit < 0 || digit > 15) this.#sizeHasEnded = true;
    if (!this.#sizeHasEnded) this.#size = this.#size * 16 + digit;
  }

  #startChunk(): void {
    const size = this.#size;
    this.#size = 0;
    this.#sizeHasEnded = false;
    if (size === 0) {
      this.#trailer = new LinesReader(true);
      return;
    }
    this.#missing = size + 2;
    this.#limitChunks(size);
  }

  /** Counts a chunk. The last chunk of a body may have any size, so each counts when the next one follows. */
  #limitChunks(size: number): void {
    const later = this.#chunks - MAX_SMALL_CHUNKS;
    const isSmall =
      this.#bytes < this.#chunks * MIN_MEAN_CHUNK_BYTES && this.#laterBytes < later * MIN_MEAN_CHUNK_BYTES;
    if (isSmall) throw serviceError('CHUNKS_TOO_SMALL', MIN_MEAN_CHUNK_BYTES);
    this.#chunks += 1;
    this.#bytes += size;
    if (later >= 0) this.#laterBytes += size;
  }
}
