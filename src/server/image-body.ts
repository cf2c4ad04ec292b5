/** @module Bodies that are an image, not a form. The options are then query parameters. */
import type { IncomingMessage } from 'node:http';
import type { TextField } from '../conversion/types.ts';
import { ServiceError, serviceError } from '../errors.ts';
import { sanitizeForDisplay } from '../text.ts';
import { filenameIn, parseParameters } from './multipart/headers.ts';
import type { UploadOptions } from './upload-options.ts';

/** What the head of a request states about an image in its body. */
export interface ImageBody {
  /** The file name; undefined if the request has none. */
  readonly name: string | undefined;
  readonly options: readonly TextField[];
  /** Whether the media type is that of an image or of any file. By default, curl declares a form. */
  readonly isDeclared: boolean;
}

const IMAGE_TYPE = /^(?:image\/.+|application\/(?:octet-stream|pdf))$/;
/** The type of `curl --data-binary` without a header. */
const CURL_TYPE = 'application/x-www-form-urlencoded';

/** Maximum number of unknown parameters that a message names. */
const MAX_NAMED = 5;

/**
 * Returns what the request states about an image in its body, or undefined if the body is to be read as a form.
 *
 * @param fields the known names of options
 * @throws {ServiceError} UNKNOWN_PARAMETER
 */
export function imageBodyOf(
  req: IncomingMessage,
  { acceptsImage }: UploadOptions,
  fields: readonly string[],
): ImageBody | undefined {
  const { 'content-type': types = [], 'content-disposition': dispositions = [] } = req.headersDistinct;
  const type = types.length === 0 ? '' : parseParameters(types[0] as string)?.value;
  if (!acceptsImage || types.length > 1 || type === undefined) return undefined;
  const isDeclared = IMAGE_TYPE.test(type);
  if (!isDeclared && type !== '' && type !== CURL_TYPE) return undefined;
  const options = [...new URL(req.url ?? '', 'http://localhost').searchParams];
  const unknown = options.flatMap(([name]) => (fields.includes(name) ? [] : [sanitizeForDisplay(name, 80)]));
  if (unknown.length > 0) throw serviceError('UNKNOWN_PARAMETER', unknown.slice(0, MAX_NAMED), fields);
  return { name: nameIn(dispositions), options, isDeclared };
}

/** Converts an error of a body whose media type is not that of an image: the client may have meant another body. */
export function explainBody(
  error: unknown,
  { isDeclared }: ImageBody,
  { fileField }: UploadOptions,
): unknown {
  const isOther =
    error instanceof ServiceError && (error.code === 'EMPTY_FILE' || error.code === 'UNSUPPORTED_TYPE');
  return isOther && !isDeclared ? serviceError('NOT_MULTIPART', fileField, true) : error;
}

/** Returns the file name in `Content-Disposition` (RFC 6266). */
function nameIn([header, ...others]: readonly string[]): string | undefined {
  const disposition = others.length > 0 ? undefined : parseParameters(decode(header ?? ''));
  return disposition && filenameIn(disposition, (text) => text);
}

/** Decodes a header, which Node.js reads as Latin-1. curl and others send the bytes of UTF-8. */
function decode(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  const text = bytes.toString();
  return text.includes('\uFFFD') ? header : text;
}
