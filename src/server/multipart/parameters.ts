/** @module Parses header values with parameters. */
/** A syntax for quoted strings in header parameters. */
interface QuotingRules {
  /** Matches one parameter and its semicolon. No character can match in two ways, so the time is linear. */
  readonly piece: RegExp;
  readonly quoted: RegExp;
  readonly resolveEscapes: (text: string) => string;
}

/** RFC 9110, section 5.6.4. A backslash is kept unless `"` or `\` follows it, as in a Windows path. */
const RFC_RULES: QuotingRules = {
  piece: /((?:[^";]|"(?:[^"\\]|\\.)*")*)(?:;|$)/suy,
  quoted: /^"(?:[^"\\]|\\.)*"$/su,
  resolveEscapes: (text) => text.replace(/\\(["\\])/g, '$1'),
};

/** WHATWG HTML, section 4.10.21.8: browsers encode a quotation mark as `%22` and do not escape a backslash. */
const BROWSER_RULES: QuotingRules = {
  piece: /((?:[^";]|"[^"]*")*)(?:;|$)/suy,
  quoted: /^"[^"]*"$/su,
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
 * Parses a header value such as `form-data; name="file"; filename=photo.jpg` (RFC 9110, section 5.6.6).
 *
 * Accepts what receivers must or should accept: empty parameters, and unquoted values with blanks, which end at the
 * next semicolon. A value that is malformed by the RFC, such as `"a\"`, is parsed by the rules of browsers.
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

/** Splits at the semicolons that are not in quotation marks. */
function split(text: string, { piece }: QuotingRules): string[] | undefined {
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

function unquote(text: string, { quoted, resolveEscapes }: QuotingRules): string | undefined {
  if (!text.startsWith('"')) return text;
  return quoted.test(text) ? resolveEscapes(text.slice(1, -1)) : undefined;
}
