/**
 * @module Detects the type of a file from its first bytes, never from the name of the file or its
 * declared type. Repairs images, and inspects them without decoding them. One row per format.
 */
import { open } from 'node:fs/promises';
import { constants, gunzipSync } from 'node:zlib';
import { fileTypeFromBuffer } from 'file-type';
import { ALL_INPUT_TYPES, type InputType } from '../tables/formats.ts';
import { readBmp, repairBmp } from './bmp.ts';
import {
  bufferReader,
  type RepairContext,
  type RepairTarget,
  readAt,
  type WindowReader,
  withReader,
} from './containers/file.ts';
import { TAG, TiffReader } from './containers/ifd.ts';
import { readGif, repairGif } from './gif.ts';
import { readHeif } from './heif/heif.ts';
import { repairHeif } from './heif/heif-repair.ts';
import { keepBestImage, readIco } from './ico.ts';
import { type ImageFacts, type ImageInfo, RGB_PIXELS } from './image-info.ts';
import { readJp2, repairJp2 } from './jp2.ts';
import { readJpeg } from './jpeg/jpeg.ts';
import { readJxl } from './jxl.ts';
import { readPng } from './png/png.ts';
import { readPsd, repairPsd } from './psd.ts';
import { repairSvg } from './svg/rewrite.ts';
import { readSvg } from './svg/svg-info.ts';
import { skipXmlPreamble } from './svg/svg-markup.ts';
import { readTiff } from './tiff/tiff.ts';
import { repairTiff } from './tiff/tiff-repair.ts';
import { readWebp } from './webp.ts';

/** Types of files that can be stored. */
export type FileType = InputType | 'zip' | 'archive';

/** Number of bytes sufficient to detect every type except an SVG with a long preamble. */
export const DETECTION_BYTES = 4100;
/** Maximum length of comments and a document type before `<svg`, in bytes. */
const MAX_PREAMBLE_BYTES = 64 * 1024;

/** A type, `unknown`, or `unsure` if more bytes could decide. */
export type DetectedType = FileType | 'unknown' | 'unsure';

/** Types that `file-type` reports under another extension. An animated PNG is taken as PNG. */
const ALIASES: Readonly<Record<string, InputType>> = { apng: 'png', tif: 'tiff', jpx: 'jp2', j2c: 'jp2' };

/** Archives and compressed files, by the file extension that `file-type` reports. */
const ARCHIVES = /^(?:7z|Z|ace|ar|arj|bz2|cab|cpio|deb|gz|jar|lz|lz4|lzh|rar|rpm|tar|tar\.gz|xar|xz|zst)$/;

/** What `file-type` skips: a byte order mark, or an ID3 tag. Only PDF and SVG may follow it. */
const SKIPPED = /^(?:\u00ef\u00bb\u00bf|ID3)/;

/** Detects the type of a file by its first bytes. `complete` states whether these are all. */
export async function detectType(head: Uint8Array, complete: boolean): Promise<DetectedType> {
  const found = (await fileTypeFromBuffer(head))?.ext;
  if (found !== 'pdf' && SKIPPED.test(Buffer.from(head.subarray(0, 3)).toString('latin1')))
    return detectSvg(head, complete);
  if (found === 'arw' && !(await isCameraRaw(head))) return 'tiff';
  if (found === 'heic' && isAvifToo(head)) return 'avif';
  const type = ALL_INPUT_TYPES.find((one) => one === found) ?? ALIASES[found ?? ''];
  if (type) return type;
  if (startsWith(head, ZIP)) return 'zip';
  if (found === 'gz') return detectSvg(unpackHead(head), true) === 'svg' ? 'svg' : 'archive';
  if (found !== undefined && ARCHIVES.test(found)) return 'archive';
  if (found !== undefined && found !== 'xml') return 'unknown';
  // To distinguish camera formats, `file-type` reads the first directory, which can be beyond
  // `head`.
  if (found === undefined && startsWith(head, TIFF)) return 'tiff';
  return detectSvg(head, complete);
}

/** Detects the type of a file on disk, except an SVG with a longer preamble than `headBytes`. */
export async function detectFileType(path: string, headBytes = DETECTION_BYTES): Promise<DetectedType> {
  await using file = await open(path, 'r');
  const { bytes, found } = await readAt(file, 0, headBytes);
  return await detectType(bytes.subarray(0, found), found < headBytes);
}

/** Bytes of a gzip file to unpack. They expand to at most 1 MiB. */
const GZIP_HEAD_BYTES = 1024;

/** Unpacks the start of a gzip file, perhaps an SVG. Returns no bytes if it is damaged. */
function unpackHead(head: Uint8Array): Uint8Array {
  try {
    return gunzipSync(head.subarray(0, GZIP_HEAD_BYTES), {
      finishFlush: constants.Z_SYNC_FLUSH,
    });
  } catch {
    return new Uint8Array();
  }
}

/** Checks for a general brand of HEIF, with `avif` or `avis` among the compatible brands. */
function isAvifToo(head: Uint8Array): boolean {
  const box = Buffer.from(head.buffer, head.byteOffset, head.length);
  const brands = box.subarray(16, Math.min(box.readUInt32BE(0), 256)).toString('latin1');
  return (
    ['mif1', 'msf1'].includes(box.toString('latin1', 8, 12)) &&
    (brands.match(/.{4}/gs) ?? []).some((brand) => /^avi[fs]$/.test(brand))
  );
}

/** Starts of a ZIP, also of documents, and of empty archives, which have no file header. */
const ZIP = ['PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08'];
const TIFF = ['II*\0', 'MM\0*', 'II+\0', 'MM\0+'];

/** Returns whether the first four bytes are one of these. */
const startsWith = (head: Uint8Array, starts: readonly string[]): boolean =>
  starts.includes(Buffer.from(head.subarray(0, 4)).toString('latin1'));

/**
 * Checks whether the first directory is that of a camera's raw format: a preview, or one with
 * sub-directories. `file-type` takes every TIFF with PrintIM (0xC4A5) for a raw image of a Sony
 * camera, but cameras of other vendors write it to common TIFFs.
 */
async function isCameraRaw(head: Uint8Array): Promise<boolean> {
  const tiff = await TiffReader.open(bufferReader(Buffer.from(head)));
  if (!tiff) return true;
  const tags = await tiff.tags((await tiff.first()) ?? 0);
  return tags.has(TAG.subDirectories) || ((tags.get(TAG.newSubfileType)?.value ?? 0) & 1) !== 0;
}

/** Matches the root element with any namespace prefix. */
const SVG_ROOT = /^<(?:[\w.-]+:)?svg[\s/>]/;

function detectSvg(head: Uint8Array, complete: boolean): DetectedType {
  const text = skipXmlPreamble(head);
  if (SVG_ROOT.test(text)) return 'svg';
  const isPreamble =
    text === '' ||
    text.startsWith('<!') ||
    text.startsWith('<?') ||
    (text.startsWith('<') && text.length < 64);
  return isPreamble && !complete && head.length < MAX_PREAMBLE_BYTES ? 'unsure' : 'unknown';
}

interface Format {
  readonly inspect: (bytes: WindowReader) => Promise<ImageFacts>;
  /** Repairs a file in place. Returns the type of the repaired file if it is another one. */
  readonly repair?: (target: RepairTarget) => Promise<InputType | undefined>;
}

const FORMATS: Readonly<Record<InputType, Format>> = {
  png: { inspect: readPng },
  avif: { inspect: readHeif, repair: (target) => repairHeif(target, 'avif') },
  bmp: { inspect: readBmp, repair: repairBmp },
  jpg: { inspect: readJpeg },
  tiff: { inspect: readTiff, repair: repairTiff },
  gif: { inspect: readGif, repair: repairGif },
  ico: { inspect: readIco, repair: keepBestImage },
  webp: { inspect: readWebp },
  svg: { inspect: readSvg, repair: repairSvg },
  heic: { inspect: readHeif, repair: (target) => repairHeif(target, 'heic') },
  jxl: { inspect: readJxl },
  jp2: { inspect: readJp2, repair: repairJp2 },
  psd: { inspect: readPsd, repair: repairPsd },
  cur: { inspect: readIco, repair: keepBestImage },
  pdf: { inspect: async () => ({ profile: 'none', metadata: [], pixels: RGB_PIXELS }) }, // only pdfinfo reads more
};

/**
 * Repairs the file at `path` in place: what the tools would reject or misread.
 *
 * @returns the type of the repaired file: `png` for an icon whose best image is a PNG
 * @throws {ServiceError} FILE_TOO_LARGE or CORRUPT_IMAGE for a compressed SVG, CONVERSION_TIMEOUT
 *   for an SVG, DISK_FULL if the disk has no space for the repaired file
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export async function repair(path: string, type: InputType, context: RepairContext): Promise<InputType> {
  const { repair } = FORMATS[type];
  if (!repair) return type;
  await using file = await open(path, 'r+');
  return (await repair({ ...context, path, file })) ?? type;
}

/**
 * Reads size, frames, colour and metadata from the header of the file at `path`. A damaged header
 * is not an error: fields are missing, and the tool that decodes the file reports the damage. The
 * amount of reading is bounded for any content.
 *
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export function inspect(path: string, type: InputType): Promise<ImageInfo> {
  return withReader(path, async (bytes) => ({ type, ...(await FORMATS[type].inspect(bytes)) }));
}
