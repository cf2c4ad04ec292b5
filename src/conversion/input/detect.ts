import { fileTypeFromBuffer } from 'file-type';
import type { InputType } from '../../formats.ts';

/** What a file is, from its first bytes: never from its name or its declared type. */

/** Bytes that are enough for every type but an SVG with a long preamble. */
export const DETECTION_BYTES = 4100;
/** How much of a preamble (comments, a document type) may stand before `<svg`. */
const MAX_PREAMBLE_BYTES = 64 * 1024;

/** A type; or a `zip` or other `archive`, which holds files; or `unknown`; or `unsure`, when more bytes could still tell. */
export type DetectedType = InputType | 'zip' | 'archive' | 'unknown' | 'unsure';

/** What the library calls the types; an animated PNG is a PNG to every reader of PNG. */
const TYPES_BY_EXTENSION: Readonly<Record<string, InputType>> = {
  png: 'png',
  apng: 'png',
  jpg: 'jpg',
  gif: 'gif',
  bmp: 'bmp',
  tif: 'tiff',
  avif: 'avif',
  ico: 'ico',
  webp: 'webp',
  heic: 'heic',
  jxl: 'jxl',
  jp2: 'jp2',
  jpx: 'jp2',
  j2c: 'jp2',
  psd: 'psd',
  cur: 'cur',
};

/** Archives and compressed files, as the library calls them. */
const ARCHIVES = [
  ...['7z', 'Z', 'ace', 'ar', 'arj', 'bz2', 'cab', 'cpio', 'deb', 'gz', 'jar', 'lz', 'lz4', 'lzh'],
  ...['rar', 'rpm', 'tar', 'tar.gz', 'xar', 'xz', 'zst'],
];

/**
 * @param head the file's first bytes
 * @param complete whether that is the whole file
 */
export async function detectType(head: Uint8Array, complete: boolean): Promise<DetectedType> {
  const found = (await fileTypeFromBuffer(head))?.ext;
  if (found === 'heic' && isAvifToo(head)) return 'avif';
  if (found !== undefined && Object.hasOwn(TYPES_BY_EXTENSION, found))
    return TYPES_BY_EXTENSION[found] as InputType;
  if (isZip(head)) return 'zip';
  if (found !== undefined && ARCHIVES.includes(found)) return 'archive';
  if (found !== undefined && found !== 'xml') return 'unknown';
  // The library looks at the first directory to tell cameras apart: here it is further behind.
  if (found === undefined && isTiff(head)) return 'tiff';
  return detectSvg(head, complete);
}

/** A general HEIF brand (`mif1`) first, and `avif` among the compatible ones. */
function isAvifToo(head: Uint8Array): boolean {
  const box = Buffer.from(head.buffer, head.byteOffset, head.length);
  const brands = box.subarray(16, Math.min(box.readUInt32BE(0), 256)).toString('latin1');
  return (
    box.toString('latin1', 8, 12) === 'mif1' &&
    (brands.match(/.{4}/gs) ?? []).some((brand) => /^avi[fs]$/.test(brand))
  );
}

/** Also such as the library takes for a document, which is a ZIP inside; an empty archive has no file header. */
function isZip(head: Uint8Array): boolean {
  const start = Buffer.from(head.subarray(0, 4)).toString('latin1');
  return ['PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08'].includes(start);
}

function isTiff(head: Uint8Array): boolean {
  const start = Buffer.from(head.subarray(0, 4)).toString('latin1');
  return ['II*\0', 'MM\0*', 'II+\0', 'MM\0+'].includes(start);
}

/**
 * What may stand before the root element, a piece at a time. Inside a document
 * type every character has one way to match, so that no input makes it slow.
 */
const QUOTED = `"[^"]*"|'[^']*'`;
const COMMENT = '<!--(?:(?!-->)[^])*-->';
const SUBSET = `\\[(?:${COMMENT}|${QUOTED}|<(?!!--)|[^\\]"'<])*\\]`;
const DOCTYPE = `<!DOCTYPE(?:${QUOTED}|${SUBSET}|[^[\\]<>"'])*>`;
const PREAMBLE = new RegExp(`^(?:\\s+|<\\?[^]*?\\?>|${COMMENT}|${DOCTYPE})`);
/** The root itself, with any namespace prefix. */
const SVG_ROOT = /^<(?:[\w.-]+:)?svg[\s/>]/;

function detectSvg(head: Uint8Array, complete: boolean): DetectedType {
  const text = skipXmlPreamble(head);
  if (SVG_ROOT.test(text)) return 'svg';
  const couldGoOn =
    text === '' ||
    text.startsWith('<!') ||
    text.startsWith('<?') ||
    (text.startsWith('<') && text.length < 64);
  return couldGoOn && !complete && head.length < MAX_PREAMBLE_BYTES ? 'unsure' : 'unknown';
}

/** The text of an XML file from its root element on, or from what is no preamble. */
export function skipXmlPreamble(head: Uint8Array): string {
  let text = decode(head);
  for (let match = PREAMBLE.exec(text); match; match = PREAMBLE.exec(text))
    text = text.slice(match[0].length);
  return text;
}

/** XML is UTF-8 unless it starts with the mark of UTF-16. */
function decode(head: Uint8Array): string {
  const [first, second] = head;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(head);
}
