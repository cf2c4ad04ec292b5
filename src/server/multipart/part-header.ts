/** @module Parses and formats the headers of parts. */
import { lastComponentOf, MAX_NAME_UNITS } from '../../conversion/filename.ts';
import { truncate } from '../../text.ts';
import { type ParameterizedValue, parseParameters } from './parameters.ts';

/** The parsed header of a part (RFC 7578, section 4). */
export interface PartHeader {
  /** Field name; undefined if absent. */
  readonly name: string | undefined;
  readonly isFile: boolean;
  /** File name without folders, at most {@link MAX_NAME_UNITS} long; empty if absent. */
  readonly filename: string;
  /** Whether this is a browser's file input without a selected file, provided that the part has no bytes. */
  readonly isEmptyInput: boolean;
  /** Charset of a text field; undefined if absent. */
  readonly charset: string | undefined;
}

/** Types that make a part a file without a file name, which is only a SHOULD (RFC 7578, section 4.2). */
const FILE_TYPE = /^(?:image\/.*|application\/(?:octet-stream|zip|x-zip-compressed))$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters to reject them
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000a-\u001f\u007f]/;
/** A header name (RFC 9110, section 5.6.2) and its value. */
const HEADER_LINE = /^([\w!#$%&'*+.^`|~-]+):(.*)$/su;

/** Headers that are interpreted. Each may occur only once, so that no other parser can choose a different one. */
const UNIQUE_HEADERS = ['content-disposition', 'content-type'];

/** Parses the header of a part. @returns undefined if it is malformed or is not the header of a form field */
export function parsePartHeader(block: string): PartHeader | undefined {
  const fields = parseFields(block);
  const disposition = parseParameters(fields?.get('content-disposition') ?? '');
  if (disposition?.value !== 'form-data') return undefined;
  const { parameters } = disposition;
  const type = parseParameters(fields?.get('content-type') ?? '');
  const name = parameters.get('name');
  const filename = filenameIn(disposition);
  return {
    name: name === undefined ? undefined : truncate(name, MAX_NAME_UNITS),
    isFile: parameters.has('filename') || parameters.has('filename*') || FILE_TYPE.test(type?.value ?? ''),
    // A name in the extended form may contain control characters, including line breaks.
    filename: lastComponentOf(filename).replace(/\p{Cc}/gu, ''),
    isEmptyInput: parameters.has('filename') && filename === '',
    charset: type?.parameters.get('charset'),
  };
}

/** Parses the lines of a header, and unfolds folded lines (RFC 5322, section 2.2.3). */
function parseFields(block: string): ReadonlyMap<string, string> | undefined {
  const fields = new Map<string, string>();
  let name: string | undefined;
  for (const line of block.split('\r\n')) {
    if (CONTROL_CHARACTERS.test(line)) return undefined;
    const isFolded = /^[ \t]/.test(line);
    const [, fieldName, value = ''] = (isFolded ? undefined : HEADER_LINE.exec(line)) ?? [];
    if (isFolded ? name === undefined : fieldName === undefined) return undefined;
    if (isFolded) {
      fields.set(name as string, `${fields.get(name as string)}${line}`);
      continue;
    }
    name = fieldName?.toLowerCase() as string;
    if (fields.has(name) && UNIQUE_HEADERS.includes(name)) return undefined;
    fields.set(name, value);
  }
  return fields;
}

/** Returns the file name. The extended form takes precedence if it can be decoded (RFC 6266, section 4.3). */
function filenameIn({ parameters }: ParameterizedValue): string {
  return decodeExtended(parameters.get('filename*') ?? '') ?? parameters.get('filename') ?? '';
}

/**
 * Decodes the extended form, such as `UTF-8''%e2%82%ac` (RFC 8187, section 3.2). @returns undefined if it is invalid
 */
function decodeExtended(text: string): string | undefined {
  const [, charset, encoded] = /^([^']+)'[^']*'((?:[!-$&-~]|%[\da-f]{2})+)$/iu.exec(text) ?? [];
  if (charset === undefined || encoded === undefined) return undefined;
  const bytes = encoded.replace(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Formats a part's header in the only notation that the parser receives. */
export function formatPartHeader({ name, isFile, filename, charset }: PartHeader): string {
  const parameters = [
    ...(name === undefined ? [] : [`name=${quote(name)}`]),
    ...(filename === '' ? [] : [`filename=${quote(filename)}`]),
  ];
  const text =
    charset !== undefined && /^[\w.:-]{1,40}$/.test(charset)
      ? `text/plain; charset=${charset}`
      : 'text/plain';
  return [
    `Content-Disposition: ${['form-data', ...parameters].join('; ')}`,
    `Content-Type: ${isFile ? 'application/octet-stream' : text}`,
  ].join('\r\n');
}

function quote(text: string): string {
  return `"${text.replace(/\p{Cc}/gu, '\uFFFD').replace(/["\\]/g, '\\$&')}"`;
}
