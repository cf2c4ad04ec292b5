/** @module Finds where the head and the body of a request end (RFC 9112). Node's parser checks the syntax. */
import type { IncomingHttpHeaders } from 'node:http';
import { serviceError } from '../errors.ts';

/** Finds the end of a part of a message. */
export interface MessageReader {
  /** Reads the bytes that belong to the part: all of them if its end follows later. */
  read(bytes: Buffer): Piece;
}

/** A piece of a message. */
interface Piece {
  /** Number of bytes that were read. */
  readonly length: number;
  /** What Node's parser receives in their place: the same bytes, except that chunks are merged. */
  readonly bytes: Buffer;
}

const firstBytes = (bytes: Buffer, length: number): Piece => ({ length, bytes: bytes.subarray(0, length) });

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

  read(bytes: Buffer): Piece {
    const length = Math.min(this.#missing, bytes.length) || bytes.length;
    this.#missing -= length;
    return firstBytes(bytes, length);
  }
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
    for (
      let digit = hexDigit(bytes[at]);
      digit !== undefined && at - end < MAX_SIZE_DIGITS;
      digit = hexDigit(bytes[at])
    ) {
      size = size * 16 + digit;
      at += 1;
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
