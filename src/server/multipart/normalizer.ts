import { Transform, type TransformCallback } from 'node:stream';
import { formatPartHeader, type PartHeader, parsePartHeader } from './part-header.ts';

/**
 * Rewrites a `multipart/form-data` body so that it can be read in one way only. What stands behind it, which is the
 * library that parses, sees one form of everything that RFC 2046, RFC 7578 and RFC 8187 have receivers accept.
 *
 * The rules, which leave no second reading to a proxy or filter in front of the service:
 *
 * - A boundary at the start of a line is a delimiter wherever it is. Behind it stand `--`, or blanks and a line break.
 *   Anything else is refused, also inside of a file.
 * - A line break is CR LF.
 * - The header of a part has one `Content-Disposition: form-data` and at most one `Content-Type`. No parameter is
 *   repeated. Anything else is refused, and nothing is passed over in silence.
 * - A part is a file when it has a file name, also an empty one, or the type of an image, of an archive, or
 *   `application/octet-stream`.
 * - A part with an empty file name and no bytes is a file input in which nothing was chosen. It becomes an empty text
 *   field, which counts as absent.
 *
 * It takes time that is linear in the body, and holds at most one header and one chunk.
 */

/** For the header of one part, in bytes: Node.js allows as much for that of a request. */
const MAX_HEADER_BYTES = 16 * 1024;

const END_OF_HEADER = Buffer.from('\r\n\r\n');
const LINE_BREAK = Buffer.from('\r\n');
const NOTHING = Buffer.alloc(0);

/** The body is not multipart/form-data. */
export class MalformedMultipartError extends Error {
  override readonly name = 'MalformedMultipartError';
}

/** Its output has the same boundary, emits 'error' with a {@link MalformedMultipartError}, and may end too early. */
export class MultipartNormalizer extends Transform {
  readonly #delimiter: Buffer;
  #reads: 'data' | 'header' | 'epilogue' = 'data';
  /** What has come and is not passed on. The first delimiter needs no line break in front of it. */
  #held: Buffer = LINE_BREAK;
  /** The part whose header has been read and not yet passed on. */
  #announced: PartHeader | undefined;
  /** Bytes in front of the first data of a part that are not part of them. */
  #skipped = 0;
  /** Whether the bytes belong to a part; else they are the preamble. */
  #inPart = false;

  constructor(boundary: string) {
    super();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      if (this.#reads !== 'epilogue') this.#read(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #read(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    while (this.#reads === 'data' ? this.#readData() : this.#readHeader());
  }

  /** Passes data on up to the next delimiter. @returns whether a header follows */
  #readData(): boolean {
    const end = this.#held.indexOf(this.#delimiter);
    const passed = end < 0 ? this.#held.length - this.#beginningOfDelimiter() : end;
    this.#passOn(this.#held.subarray(0, passed));
    this.#held = this.#held.subarray(end < 0 ? passed : end + this.#delimiter.length);
    if (end < 0) return false;
    this.#endPart();
    this.#reads = 'header';
    return true;
  }

  /** How many bytes at the end of what is held may be the beginning of a delimiter. */
  #beginningOfDelimiter(): number {
    const longest = Math.min(this.#held.length, this.#delimiter.length - 1);
    const tail = this.#held.subarray(this.#held.length - longest);
    for (let at = tail.indexOf('\r'); at >= 0; at = tail.indexOf('\r', at + 1)) {
      const length = longest - at;
      if (tail.compare(this.#delimiter, 0, length, at) === 0) return length;
    }
    return 0;
  }

  /** Reads what follows a delimiter. @returns whether data follow */
  #readHeader(): boolean {
    if (this.#held.length < 2) return false;
    if (this.#held.toString('latin1', 0, 2) === '--') return this.#endBody();
    const end = this.#held.indexOf(END_OF_HEADER);
    if ((end < 0 ? this.#held.length : end) > MAX_HEADER_BYTES)
      throw new MalformedMultipartError('header too long');
    if (end < 0) return false;
    this.#announced = this.#parseHeader(this.#held.subarray(0, end));
    this.#inPart = true;
    // The line break in front of the data may also be that of a delimiter: then there are no data.
    this.#held = this.#held.subarray(end + LINE_BREAK.length);
    this.#skipped = LINE_BREAK.length;
    this.#reads = 'data';
    return true;
  }

  /** @param bytes from the boundary on: blanks, a line break, and the lines of the header */
  #parseHeader(bytes: Buffer): PartHeader {
    const text = bytes.toString();
    const padding = /^[ \t]*\r\n/.exec(text)?.[0];
    if (padding === undefined || bytes.includes(this.#delimiter))
      throw new MalformedMultipartError('no line break behind a boundary');
    const header = parsePartHeader(text.slice(padding.length));
    if (!header) throw new MalformedMultipartError('malformed part header');
    return header;
  }

  #passOn(data: Buffer): void {
    if (!this.#inPart || data.length === 0) return;
    const content = data.subarray(this.#skipped);
    this.#skipped = 0;
    if (content.length === 0) return;
    this.#announce(this.#announced?.isFile);
    this.push(content);
  }

  #announce(isFile = false): void {
    if (this.#announced === undefined) return;
    const header = formatPartHeader({ ...this.#announced, isFile });
    this.#announced = undefined;
    this.push(Buffer.concat([this.#delimiter, LINE_BREAK, Buffer.from(header), END_OF_HEADER]));
  }

  /** A part whose header has not been passed on is empty. */
  #endPart(): void {
    this.#announce(this.#announced?.isFile && !this.#announced.isEmptyInput);
    this.#inPart = false;
  }

  #endBody(): false {
    this.push(Buffer.concat([this.#delimiter, Buffer.from('--'), LINE_BREAK]));
    this.#reads = 'epilogue';
    this.#held = NOTHING;
    return false;
  }
}
