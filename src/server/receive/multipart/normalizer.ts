/**
 * @module Rewrites a `multipart/form-data` body to an unambiguous form. The parser behind it sees
 * only one notation for everything that RFC 2046, RFC 7578 and RFC 8187 require receivers to
 * accept.
 *
 * These rules ensure that the service cannot read a body differently than a proxy or filter in
 * front of it:
 *
 * - The request has one `Content-Type`.
 * - A boundary at the start of a line is always a delimiter, also in the data of a file. `--`, or
 *   blanks and a line break, must follow it.
 * - A line break is CR LF.
 * - The header of a part has one `Content-Disposition: form-data` and at most one `Content-Type`.
 *   No parameter is repeated. Everything else is rejected, and nothing is ignored silently.
 * - A part is a file if it has a file name, also an empty one, or if its type is an image, an
 *   archive, or `application/octet-stream`.
 * - A part with an empty file name and no bytes is a file input without a selection. It becomes an
 *   empty text field, which counts as absent.
 *
 * Time is linear in the size of the body. At most one header and one chunk are kept in memory.
 */
import type { IncomingMessage } from 'node:http';
import { Transform, type TransformCallback } from 'node:stream';
import busboy from 'busboy';
import { serviceError } from '../../../tables/errors.ts';
import type { UploadOptions } from '../file-collector.ts';
import { formatPartHeader, type PartHeader, parseParameters, parsePartHeader } from './headers.ts';

/** Maximum size of a text field, in bytes. A dozen variants with all options are shorter. */
export const MAX_FIELD_BYTES = 8 * 1024;
/** Maximum number of text fields. */
export const MAX_FIELDS = 100;
/** 1 to 70 printable ASCII characters, no blank at the end. RFC 2046, 5.1.1 allows fewer kinds. */
const BOUNDARY = /^[ -~]{0,69}[!-~]$/;

/**
 * Opens the parser of a request's body, and the stream that normalizes the body for it.
 *
 * @throws {ServiceError} NOT_MULTIPART, by the headers of the request
 */
export function openParser(
  req: IncomingMessage,
  { fileField, acceptsImage }: Pick<UploadOptions, 'fileField' | 'acceptsImage'>,
): { normalizer: MultipartNormalizer; parser: busboy.Busboy } {
  // Node.js would use the first of several Content-Type headers, and a proxy may use another one.
  const types = req.headersDistinct['content-type'] ?? [];
  const type = types.length === 1 ? parseParameters(types[0] as string) : undefined;
  const boundary = type?.parameters.get('boundary') ?? '';
  if (type?.value !== 'multipart/form-data' || !BOUNDARY.test(boundary))
    throw serviceError('NOT_MULTIPART', fileField, acceptsImage);
  const quoted = boundary.replace(/["\\]/g, '\\$&');
  return {
    normalizer: new MultipartNormalizer(boundary),
    // Every part is a file or a text field, so the limits on these are limits on all parts.
    parser: busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${quoted}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_FIELD_BYTES },
    }),
  };
}

/** Maximum size of a part's header, in bytes, as Node.js has for that of a request. */
const MAX_HEADER_BYTES = 16 * 1024;

/** Maximum size of preamble and epilogue together, in bytes. Programs send a sentence at most. */
const MAX_OUTER_BYTES = 64 * 1024;

const END_OF_HEADER = Buffer.from('\r\n\r\n');
const LINE_BREAK = Buffer.from('\r\n');
const EMPTY = Buffer.alloc(0);

/** Reports a body that is not valid multipart/form-data. */
class MalformedMultipartError extends Error {
  override readonly name = 'MalformedMultipartError';
}

/**
 * Transform stream that normalizes a body. The output has the same boundary. For an invalid body,
 * the stream emits `error` with a {@link MalformedMultipartError}. A body without a last boundary
 * ends without one.
 */
class MultipartNormalizer extends Transform {
  readonly #delimiter: Buffer;
  #reads: 'data' | 'header' | 'epilogue' = 'data';
  /** Received, unprocessed bytes. Starts as a line break, which the first delimiter may omit. */
  #held: Buffer = LINE_BREAK;
  /** Number of held bytes that do not contain the end of a header. */
  #searched = 0;
  /** Header of the current part that has been parsed and not yet written. */
  #pendingHeader: PartHeader | undefined;
  /** Bytes to skip before the data of a part. */
  #bytesToSkip = 0;
  /** Bytes of the preamble and the epilogue. */
  #outerBytes = 0;
  /** Whether the data belongs to a part. Otherwise it is the preamble. */
  #inPart = false;

  constructor(boundary: string) {
    super();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      if (this.#reads === 'epilogue') this.#skipOuter(chunk.length);
      else this.#read(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #read(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    while (this.#reads === 'data' ? this.#readData() : this.#readHeader());
  }

  /** Writes data up to the next delimiter. Returns whether a header follows. */
  #readData(): boolean {
    const end = this.#held.indexOf(this.#delimiter);
    const passed = end < 0 ? this.#held.length - this.#partialDelimiterLength() : end;
    this.#writeData(this.#held.subarray(0, passed));
    this.#held = this.#held.subarray(end < 0 ? passed : end + this.#delimiter.length);
    if (end < 0) return false;
    this.#endPart();
    this.#reads = 'header';
    return true;
  }

  /** Returns how many of the last held bytes may be the start of a delimiter. */
  #partialDelimiterLength(): number {
    const longest = Math.min(this.#held.length, this.#delimiter.length - 1);
    const tail = this.#held.subarray(this.#held.length - longest);
    for (let at = tail.indexOf('\r'); at >= 0; at = tail.indexOf('\r', at + 1)) {
      const length = longest - at;
      if (tail.compare(this.#delimiter, 0, length, at) === 0) return length;
    }
    return 0;
  }

  /** Parses the header after a delimiter. Returns whether data follows. */
  #readHeader(): boolean {
    if (this.#held.length < 2) return false;
    if (this.#held.toString('latin1', 0, 2) === '--') return this.#endBody();
    const end = this.#held.indexOf(END_OF_HEADER, this.#searched);
    this.#searched = end < 0 ? Math.max(0, this.#held.length + 1 - END_OF_HEADER.length) : 0;
    if ((end < 0 ? this.#held.length : end) > MAX_HEADER_BYTES)
      throw new MalformedMultipartError('header too long');
    if (end < 0) return false;
    this.#pendingHeader = this.#parseHeader(this.#held.subarray(0, end));
    this.#inPart = true;
    // The line break may also start the next delimiter: then the part has no data.
    this.#held = this.#held.subarray(end + LINE_BREAK.length);
    this.#bytesToSkip = LINE_BREAK.length;
    this.#reads = 'data';
    return true;
  }

  /**
   * Parses a part's header.
   *
   * @param bytes everything after the boundary: blanks, a line break, and the header lines
   * @throws {MalformedMultipartError}
   */
  #parseHeader(bytes: Buffer): PartHeader {
    const text = bytes.toString();
    const padding = /^[ \t]*\r\n/.exec(text)?.[0];
    if (padding === undefined || bytes.includes(this.#delimiter))
      throw new MalformedMultipartError('no line break behind a boundary');
    const header = parsePartHeader(text.slice(padding.length));
    if (!header) throw new MalformedMultipartError('malformed part header');
    return header;
  }

  /** Counts bytes outside of parts. They are ignored. */
  #skipOuter(bytes: number): void {
    this.#outerBytes += bytes;
    if (this.#outerBytes > MAX_OUTER_BYTES)
      throw new MalformedMultipartError('preamble or epilogue too long');
  }

  #writeData(data: Buffer): void {
    if (!this.#inPart) this.#skipOuter(data.length);
    if (!this.#inPart || data.length === 0) return;
    const content = data.subarray(this.#bytesToSkip);
    this.#bytesToSkip = 0;
    if (content.length === 0) return;
    this.#writeHeader(this.#pendingHeader?.isFile);
    this.push(content);
  }

  /** Writes the header of the current part, if it has not been written yet. */
  #writeHeader(isFile = false): void {
    if (this.#pendingHeader === undefined) return;
    const header = formatPartHeader({ ...this.#pendingHeader, isFile });
    this.#pendingHeader = undefined;
    this.push(Buffer.concat([this.#delimiter, LINE_BREAK, Buffer.from(header), END_OF_HEADER]));
  }

  /** Ends a part. A part whose header has not been written yet is empty. */
  #endPart(): void {
    this.#writeHeader(this.#pendingHeader?.isFile && !this.#pendingHeader.isEmptyInput);
    this.#inPart = false;
  }

  #endBody(): false {
    this.push(Buffer.concat([this.#delimiter, Buffer.from('--'), LINE_BREAK]));
    this.#reads = 'epilogue';
    this.#skipOuter(this.#held.length);
    this.#held = EMPTY;
    return false;
  }
}
