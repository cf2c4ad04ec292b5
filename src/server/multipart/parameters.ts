/** How the quotation marks of a header are read. */
interface Reading {
  /** One parameter with the semicolon behind it. No character can match in two ways, so the time is linear. */
  readonly piece: RegExp;
  readonly quoted: RegExp;
  readonly resolveEscapes: (text: string) => string;
}

/** RFC 9110, section 5.6.4, except that a backslash is kept in front of all but `"` and `\`, as in a path of Windows. */
const BY_RFC: Reading = {
  piece: /((?:[^";]|"(?:[^"\\]|\\.)*")*)(?:;|$)/suy,
  quoted: /^"(?:[^"\\]|\\.)*"$/su,
  resolveEscapes: (text) => text.replace(/\\(["\\])/g, '$1'),
};

/** WHATWG HTML, section 4.10.21.8: browsers write a quotation mark as `%22` and leave a backslash as it is. */
const BY_BROWSERS: Reading = {
  piece: /((?:[^";]|"[^"]*")*)(?:;|$)/suy,
  quoted: /^"[^"]*"$/su,
  resolveEscapes: (text) => text,
};

export interface ParameterizedValue {
  /** What stands in front of the first semicolon, in lower case. */
  readonly value: string;
  /** By their names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Parses a header value such as `form-data; name="file"; filename=photo.jpg` (RFC 9110, section 5.6.6).
 *
 * It accepts what receivers must or should accept: semicolons with nothing between them or behind them, and unquoted
 * values with blanks in them, which end at the next semicolon. A value that is malformed as the RFC reads it, such as
 * `"a\"`, is read as browsers write it.
 *
 * @returns undefined for a value that is malformed in both readings, and for one with a repeated parameter
 */
export function parseParameters(text: string): ParameterizedValue | undefined {
  return parseAs(text, BY_RFC) ?? parseAs(text, BY_BROWSERS);
}

function parseAs(text: string, reading: Reading): ParameterizedValue | undefined {
  const pieces = split(text, reading);
  if (!pieces) return undefined;
  const [value = '', ...rest] = pieces;
  const parameters = new Map<string, string>();
  for (const piece of rest) {
    const equals = piece.indexOf('=');
    if (equals < 0) continue;
    const name = piece.slice(0, equals).trim().toLowerCase();
    const content = unquote(piece.slice(equals + 1).trim(), reading);
    if (content === undefined || parameters.has(name)) return undefined;
    parameters.set(name, content);
  }
  return { value: value.trim().toLowerCase(), parameters };
}

/** The pieces between the semicolons that are not in quotation marks. */
function split(text: string, { piece }: Reading): string[] | undefined {
  const pieces: string[] = [];
  let at = 0;
  while (at < text.length) {
    piece.lastIndex = at;
    const match = piece.exec(text);
    if (!match) return undefined;
    pieces.push(match[1] as string);
    at += match[0].length;
  }
  return pieces;
}

function unquote(text: string, { quoted, resolveEscapes }: Reading): string | undefined {
  if (!text.startsWith('"')) return text;
  return quoted.test(text) ? resolveEscapes(text.slice(1, -1)) : undefined;
}
