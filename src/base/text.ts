/** @module Functions on text, from messages to file names. They run in Node.js and in browsers. */

/** Returns the first `units` UTF-16 code units of a text; one less, to split no surrogate pair. */
export function truncate(text: string, units: number): string {
  const cut = text.slice(0, units);
  const splitsPair =
    text.length > units && /[\ud800-\udbff]$/.test(cut) && /^[\udc00-\udfff]/.test(text[units] ?? '');
  return splitsPair ? cut.slice(0, -1) : cut;
}

/** Control characters, and bidirectional controls, which can disguise an extension. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters to remove them
const UNSAFE_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Makes a client's text safe to repeat in a message: replaces control characters and truncates.
 * Keeps joiners, which Persian words and emoji of families need, and characters that are newer than
 * the Unicode tables of Node.js.
 *
 * @param maxUnits maximum length of the result in UTF-16 code units, without the ellipsis
 */
export function sanitizeForDisplay(text: string, maxUnits = 40): string {
  const clean = text.toWellFormed().replace(UNSAFE_CHARACTERS, '\uFFFD');
  return clean.length > maxUnits ? `${truncate(clean, maxUnits)}…` : clean;
}

const escapeCharacter = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Writes control characters and bidirectional controls as `\u001b`. */
export const escapeControls = (text: string): string => text.replace(UNSAFE_CHARACTERS, escapeCharacter);

/** Formats JSON for a terminal: `JSON.stringify` leaves bidirectional and C1 controls. */
export const toSafeJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, undefined, indent).replace(UNSAFE_CHARACTERS, (character) =>
    character === '\n' ? character : escapeCharacter(character),
  );

/** Returns whether a path has U+FFFD, which Node.js writes for bytes of a name outside UTF-8. */
export const isInvalidName = (path: string): boolean => path.includes('\ufffd');

/** Formats a count with its noun in the singular or plural. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Parses bytes or pixels with a unit in any case, such as `10MiB` or `100k`, to a whole number. */
export function parseAmount(text: string): number | undefined {
  const [whole, digits, decimals = '', prefix = '', binary] =
    /^(\d+)(?:(\.\d+)? ?([kmgt])(i?))?[bp]?$/.exec(text.toLowerCase()) ?? [];
  if (whole === undefined) return undefined;
  const power = ['', 'k', 'm', 'g', 't'].indexOf(prefix);
  return Math.round(Number(digits + decimals) * (binary ? 1024 : 1000) ** power);
}

/** Formats a number of bytes with two or three significant digits, in units of 1000. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let power = 0;
  // Rounded, because 999.6 kB would be printed as "1000 kB".
  while (Math.round(value) >= 1000 && power < BYTE_UNITS.length - 1) {
    value /= 1000;
    power += 1;
  }
  return `${value.toFixed(power > 0 && value < 9.95 ? 1 : 0)} ${BYTE_UNITS[power]}`;
}

/** Formats a change as a percentage with some decimals, such as −45%; – if nothing was before. */
export function formatChange(before: number, after: number, digits = 0): string {
  if (before === 0) return '–';
  // A result is never empty, so do not round down to −100%.
  const percent = Math.max(-99, (after / before - 1) * 100).toFixed(digits);
  const number = percent.replace('-', '');
  const sign = Number(number) === 0 ? '±' : percent === number ? '+' : '−';
  return `${sign}${number}%`;
}

/** Formats a limit exactly: in bytes, from 1000 on also with three significant digits. */
export function formatByteLimit(bytes: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(1, bytes)) / 3), BYTE_UNITS.length - 1);
  if (power === 0) return plural(bytes, 'byte');
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${BYTE_UNITS[power]} (${bytes} bytes)`;
}

/**
 * Maximum length of a file name in UTF-16 code units; the rest is ignored. Normalization sorts
 * combining marks, in time that grows with the square of their number. File systems allow 255 units
 * or bytes.
 */
export const MAX_NAME_UNITS = 1024;
/** Maximum length of the base name of a result in bytes of UTF-8. */
export const MAX_BASE_NAME_BYTES = 200;
/** Base name of the result of a file without a usable name. */
const FALLBACK_NAME = 'image';

/** Names of files that Windows and macOS add to folders, in lower case. */
const SYSTEM_FILES = ['.ds_store', 'thumbs.db', 'desktop.ini'];

/** Returns whether a path with `/` is that of a system file, or of a resource fork (`._NAME`). */
export function isSystemFile(path: string): boolean {
  const components = path.split('/');
  const last = components.at(-1) as string;
  return (
    components.includes('__MACOSX') || last.startsWith('._') || SYSTEM_FILES.includes(last.toLowerCase())
  );
}

/** Returns an ASCII file name for clients without `filename*`. Truncates before normalizing. */
export function asciiFallback(name: string): string {
  const plain = truncate(name, MAX_NAME_UNITS).normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.replace(/[^\x20-\x7e]+/g, '_').replace(/["\\%]/g, '_');
}

/** Returns a path after its last separator, `/` or `\`, cut to {@link MAX_NAME_UNITS}. */
export function lastComponentOf(path: string): string {
  const start = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1;
  return truncate(path.slice(start), MAX_NAME_UNITS);
}

/**
 * Returns the base name of a result: the name of the input without folders, extension and control
 * characters, normalized to NFC, and at most 200 bytes of UTF-8.
 */
export function baseNameOf(clientName: string | undefined): string {
  const last = lastComponentOf(clientName ?? '');
  const clean = last.toWellFormed().replace(UNSAFE_CHARACTERS, '').normalize('NFC');
  // Removes the extension before trimming, so that a name of spaces and an extension becomes empty.
  const base = clean.replace(/(?<=.)\.[^.]*$/su, '').trim();
  const short = truncateToBytes(base, MAX_BASE_NAME_BYTES).trim();
  return /^\.*$/.test(short) ? FALLBACK_NAME : short;
}

/**
 * Characters that Windows forbids in file names:
 * https://learn.microsoft.com/windows/win32/fileio/naming-a-file. The library that writes archives
 * on the server would also take a letter with a colon for a drive.
 */
const FORBIDDEN = /[<>:"|?*\\/]/g;
/** Device names of Windows, also with an extension. The superscripts ¹, ² and ³ are digits, too. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/i;

/** Replaces what a file system of Windows cannot store in the name of a file or folder. */
export function portableName(name: string): string {
  const allowed = name.replace(FORBIDDEN, '_');
  // Windows drops spaces and dots at the end of a name, and Explorer drops spaces at its start.
  const trimmed = allowed.trimStart().replace(/[\s.]+$/u, '') || FALLBACK_NAME;
  return RESERVED_NAME.test(trimmed) ? `_${trimmed}` : trimmed;
}

/**
 * Returns the order of paths with `/` that `{number}` counts: names as in file managers, `IMG_2`
 * before `IMG_10`, and the files of a folder before its sub-folders.
 */
export function naturalOrder(): (one: string, other: string) => number {
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  return (one, other) => {
    const [names, others] = [one.split('/'), other.split('/')];
    const at = names.findIndex((name, index) => name !== others[index]);
    const [name, another] = [names[at], others[at]];
    if (name === undefined || another === undefined) return names.length - others.length;
    const isFile = at === names.length - 1;
    if (isFile !== (at === others.length - 1)) return isFile ? -1 : 1;
    return compare(name, another) || (name < another ? -1 : 1); // two names can be equal for a collator
  };
}

/**
 * Returns a key that is equal for two names if a file system that ignores case can hold only one of
 * them. It is the same on every machine.
 */
export function caseKey(name: string): string {
  // ς and σ have the same capital letter, and ß and ẞ the same small one.
  return name.toLowerCase().toUpperCase().toLowerCase().normalize('NFC');
}

/** Creates a function that makes names unique beside those `reserved`, in any case: adds ` (2)`. */
export function createUniqueNamer(
  reserved: Iterable<string> = [],
): (base: string, extension: string) => string {
  const taken = new Set(Array.from(reserved, caseKey));
  /** Number in the last of each name that occurred more than once. */
  const counts = new Map<string, number>();
  return (base, extension) => {
    const first = `${base}.${extension}`;
    for (let count = (counts.get(first) ?? 0) + 1; ; count += 1) {
      const name = count === 1 ? first : `${base} (${count}).${extension}`;
      const key = caseKey(name);
      if (taken.has(key)) continue;
      taken.add(key);
      if (count > 1) counts.set(first, count);
      return name;
    }
  };
}

/** Returns the start of a text: at most `bytes` bytes of UTF-8, in whole grapheme clusters. */
export function truncateToBytes(text: string, bytes: number): string {
  if (utf8Length(text) <= bytes) return text;
  let kept = '';
  let size = 0;
  for (const { segment } of new Intl.Segmenter().segment(text.slice(0, bytes))) {
    size += utf8Length(segment);
    if (size > bytes) break;
    kept += segment;
  }
  return kept;
}

/** Returns the length of a text in bytes of UTF-8. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Characters that XML does not permit, and controls of ISO 8859-1. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: removes them
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]/g;

/** Removes characters that XML does not permit, and white space around a text. */
export const cleanText = (text: string): string =>
  text.toWellFormed().replace(/\r\n?/g, '\n').replace(CONTROLS, '').trim();

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Escapes a text for the content of an XML element. */
export const escapeXml = (text: string): string =>
  text.replace(/[&<>]/g, (character) => ESCAPES[character] as string);
