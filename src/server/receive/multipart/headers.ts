/** @module Parses and formats the headers of parts. */
import { lastComponentOf, MAX_NAME_UNITS, truncate } from '../../../base/text.ts';

/** The parsed header of a part (RFC 7578, section 4). */
export interface PartHeader {
  /** Field name; undefined if absent. */
  readonly name: string | undefined;
  readonly isFile: boolean;
  /** File name without folders, at most {@link MAX_NAME_UNITS} long; empty if absent. */
  readonly filename: string;
  /** Whether this is a browser's file input without a selection, if the part has no bytes. */
  readonly isEmptyInput: boolean;
  /** Charset of a text field; undefined if absent. */
  readonly charset: string | undefined;
}

/** Types of a file without a file name, which is only a SHOULD (RFC 7578, section 4.2). */
const FILE_TYPE = /^(?:image\/.*|application\/(?:octet-stream|zip|x-zip-compressed))$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters to reject them
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000a-\u001f\u007f]/;
/** A header name (RFC 9110, section 5.6.2) and its value. */
const HEADER_LINE = /^([\w!#$%&'*+.^`|~-]+):(.*)$/su;

/** Headers that are interpreted. Each occurs once: no other parser can choose a different one. */
const UNIQUE_HEADERS = ['content-disposition', 'content-type'];

/** Parses a part's header; undefined if it is malformed or not that of a form field. */
export function parsePartHeader(block: string): PartHeader | undefined {
  const fields = parseFields(block);
  const text = fields?.get('content-disposition') ?? '';
  const disposition = parseParameters(text) ?? parseWith(text, LENIENT_RULES);
  if (disposition?.value !== 'form-data') return undefined;
  const { parameters } = disposition;
  const type = parseParameters(fields?.get('content-type') ?? '');
  const name = parameters.get('name');
  const filename = filenameIn(disposition, decodeFormName);
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
    if (/^[ \t]/.test(line)) {
      if (name === undefined) return undefined;
      fields.set(name, `${fields.get(name)}${line}`);
      continue;
    }
    const [, fieldName, value = ''] = HEADER_LINE.exec(line) ?? [];
    if (fieldName === undefined) return undefined;
    name = fieldName.toLowerCase();
    if (fields.has(name) && UNIQUE_HEADERS.includes(name)) return undefined;
    fields.set(name, value);
  }
  return fields;
}

/**
 * Returns the file name. The extended form takes precedence if it can be decoded (RFC 6266, section
 * 4.3).
 *
 * @param decode decodes the other form
 */
export function filenameIn({ parameters }: ParameterizedValue, decode: (text: string) => string): string {
  return decodeExtended(parameters.get('filename*') ?? '') ?? decode(parameters.get('filename') ?? '');
}

/** Decodes only what browsers encode in file names of forms (HTML, section 4.10.21.8). */
const decodeFormName = (text: string): string =>
  text.replace(/%(22|0A|0D)/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));

/** Decodes the extended form, such as `UTF-8''%e2%82%ac` (RFC 8187, 3.2); undefined if invalid. */
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

/**
 * Charsets of text fields that the parser can decode in addition to UTF-8. It drops the text of a
 * field in another one, so that field is read as UTF-8: the values of all known fields are ASCII,
 * which most charsets contain.
 */
const DECODABLE_CHARSET = /^(?:iso-8859-1|utf-16le)$/i;

/** Formats a part's header in the only notation that the parser receives. */
export function formatPartHeader({ name, isFile, filename, charset }: PartHeader): string {
  const parameters = [
    ...(name === undefined ? [] : [`name=${quote(name)}`]),
    ...(filename === '' ? [] : [`filename=${quote(filename)}`]),
  ];
  const text =
    charset !== undefined && DECODABLE_CHARSET.test(charset)
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

/** A syntax for quoted strings in header parameters. */
interface QuotingRules {
  /** A parameter and its semicolon. No character matches in two ways, so the time is linear. */
  readonly piece: RegExp;
  readonly quoted: RegExp;
  readonly resolveEscapes: (text: string) => string;
}

/** RFC 9110, 5.6.4. A backslash is kept unless `"` or `\` follows it, as in a Windows path. */
const RFC_RULES: QuotingRules = {
  piece: /((?:[^";]|"(?:[^"\\]|\\.)*")*)(?:;|$)/suy,
  quoted: /^"(?:[^"\\]|\\.)*"$/su,
  resolveEscapes: (text) => text.replace(/\\(["\\])/g, '$1'),
};

/** WHATWG HTML, 4.10.21.8: browsers encode `"` as `%22` and do not escape a backslash. */
const BROWSER_RULES: QuotingRules = {
  piece: /((?:[^";]|"[^"]*")*)(?:;|$)/suy,
  quoted: /^"[^"]*"$/su,
  resolveEscapes: (text) => text,
};

/**
 * The form-data package of npm, which axios uses, escapes nothing: `filename="5" disk.png"`. Only a
 * quotation mark before a semicolon or the end closes the value. These rules are not for a
 * boundary, which a proxy could read differently.
 */
const LENIENT_RULES: QuotingRules = {
  piece: /((?:[^";]|"(?:[^"]|"(?![ \t]*(?:;|$)))*"(?=[ \t]*(?:;|$)))*)(?:;|$)/suy,
  quoted: /^".*"$/su,
  resolveEscapes: (text) => text,
};

/** A header value and its parameters. */
export interface ParameterizedValue {
  /** Text before the first semicolon, in lower case. */
  readonly value: string;
  /** Parameters by name in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Parses a header value such as `form-data; name="file"; filename=photo.jpg` (RFC 9110, section
 * 5.6.6).
 *
 * Accepts what receivers must or should accept: empty parameters, and unquoted values with blanks,
 * which end at the next semicolon. A value that is malformed by the RFC, such as `"a\"`, is parsed
 * by the rules of browsers.
 *
 * @returns undefined if the value is malformed by both rules, or if a parameter is repeated
 */
export function parseParameters(text: string): ParameterizedValue | undefined {
  return parseWith(text, RFC_RULES) ?? parseWith(text, BROWSER_RULES);
}

function parseWith(text: string, rules: QuotingRules): ParameterizedValue | undefined {
  const pieces = split(text, rules);
  if (!pieces) return undefined;
  const [value = '', ...rest] = pieces;
  const parameters = new Map<string, string>();
  for (const piece of rest) {
    const equals = piece.indexOf('=');
    if (equals < 0) continue;
    const name = piece.slice(0, equals).trim().toLowerCase();
    const content = unquote(piece.slice(equals + 1).trim(), rules);
    if (content === undefined || parameters.has(name)) return undefined;
    parameters.set(name, content);
  }
  return { value: value.trim().toLowerCase(), parameters };
}

/** Maximum parameters of a header, also empty ones. Each takes up to 1 µs. No header has ten. */
const MAX_PARAMETERS = 100;

/** Splits at semicolons outside quotation marks. Returns undefined if malformed or too many. */
function split(text: string, { piece }: QuotingRules): string[] | undefined {
  const pieces: string[] = [];
  let at = 0;
  while (at < text.length) {
    piece.lastIndex = at;
    const match = piece.exec(text);
    if (!match || pieces.length > MAX_PARAMETERS) return undefined;
    pieces.push(match[1] as string);
    at += match[0].length;
  }
  return pieces;
}

function unquote(text: string, { quoted, resolveEscapes }: QuotingRules): string | undefined {
  if (!text.startsWith('"')) return text;
  return quoted.test(text) ? resolveEscapes(text.slice(1, -1)) : undefined;
}
