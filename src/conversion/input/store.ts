/**
 * @module Stores a received file, while it enforces the limits and detects the type. The type follows from the first bytes,
 * never from the name of the file or its declared type.
 */
import { appendFile, closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants, gunzipSync } from 'node:zlib';
import { fileTypeFromBuffer } from 'file-type';
import { serviceError } from '../../errors.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import { EXTRA_INPUT_TYPES, INPUTS, type InputType } from '../../formats.ts';
import { createEndianReader, readIfd, TIFF_LAYOUTS } from '../inspect/ifd.ts';
import { WindowReader } from '../inspect/window-reader.ts';

const append = promisify(appendFile);

/** Types of files that can be stored. */
export type FileType = InputType | 'zip' | 'archive';

/** Options of {@link storeInput}. */
export interface StoreOptions<T extends FileType> {
  /** Name of the file in error messages. */
  readonly label: string;
  readonly types: readonly T[];
  /** Returns the maximum size in bytes for a type, or for an unknown type if undefined. May throw. */
  readonly maxBytes: (type: T | undefined) => number;
  /** Aborts the writing. */
  readonly signal: AbortSignal;
  /** Disk space in which the bytes are reserved before they are written. */
  readonly disk: Pick<DiskAccount, 'store'>;
}

/**
 * Writes a stream to a new file.
 *
 * @throws {ServiceError} EMPTY_FILE; FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as it is certain; DISK_FULL if the disk
 *   has no space for bytes beyond those that the request announced
 * @throws the signal's reason if it aborts
 */
export async function storeInput<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, maxBytes, signal, disk }: StoreOptions<T>,
): Promise<{ readonly type: T; readonly length: number }> {
  const file = openSync(path, 'wx', 0o600);
  try {
    const detector = createTypeDetector(label, types);
    let length = 0;
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      length += chunk.length;
      await detector.push(chunk);
      if (length > maxBytes(detector.type))
        throw serviceError('FILE_TOO_LARGE', label, maxBytes(detector.type));
      await disk.store(chunk.length);
      await append(file, chunk);
    }
    if (length === 0) throw serviceError('EMPTY_FILE', label);
    const type = await detector.end();
    if (length > maxBytes(type)) throw serviceError('FILE_TOO_LARGE', label, maxBytes(type));
    return { type, length };
  } finally {
    closeSync(file);
  }
}

/** Detects the type from the first bytes as they arrive, and rejects unsupported types. */
interface TypeDetector<T> {
  /**
   * Adds bytes.
   *
   * @throws {ServiceError} UNSUPPORTED_TYPE as soon as it is certain
   */
  push(chunk: Buffer): Promise<void>;
  /** The detected type; undefined until enough bytes have arrived. */
  readonly type: T | undefined;
  /**
   * Returns the type of the complete file.
   *
   * @throws {ServiceError} UNSUPPORTED_TYPE
   */
  end(): Promise<T>;
}

function createTypeDetector<T extends FileType>(label: string, accepts: readonly T[]): TypeDetector<T> {
  let head: Buffer = Buffer.alloc(0);
  let enough = DETECTION_BYTES;
  let type: T | undefined;

  const detect = async (complete: boolean): Promise<void> => {
    const detected = await detectType(head, complete);
    if (detected === 'unsure') return;
    type = accepts.find((accepted) => accepted === detected);
    if (type !== undefined) return;
    const disabled = EXTRA_INPUT_TYPES.find((extra) => extra === detected);
    throw serviceError(
      'UNSUPPORTED_TYPE',
      label,
      labelsOf(accepts),
      ...(disabled ? [INPUTS[disabled].label] : []),
    );
  };
  return {
    get type() {
      return type;
    },
    async push(chunk) {
      if (type !== undefined) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < enough) return;
      enough = head.length * 2; // doubles, so that small chunks do not each repeat the detection
      await detect(false);
    },
    async end() {
      if (type === undefined) await detect(true);
      return type as T;
    },
  };
}

function labelsOf(types: readonly FileType[]): string {
  return types.flatMap((type) => (type === 'zip' || type === 'archive' ? [] : INPUTS[type].label)).join(', ');
}

/** Number of bytes sufficient to detect every type except an SVG with a long preamble. */
export const DETECTION_BYTES = 4100;
/** Maximum length of comments and a document type before `<svg`, in bytes. */
const MAX_PREAMBLE_BYTES = 64 * 1024;

/** A type, `unknown`, or `unsure` if more bytes could decide. */
type DetectedType = FileType | 'unknown' | 'unsure';

/** Types by the file extension that `file-type` reports. An animated PNG is converted as PNG. */
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

/** Archives and compressed files, by the file extension that `file-type` reports. */
const ARCHIVES = [
  ...['7z', 'Z', 'ace', 'ar', 'arj', 'bz2', 'cab', 'cpio', 'deb', 'gz', 'jar', 'lz', 'lz4', 'lzh'],
  ...['rar', 'rpm', 'tar', 'tar.gz', 'xar', 'xz', 'zst'],
];

/**
 * Detects the type of a file.
 *
 * @param head the first bytes of the file
 * @param complete whether `head` is the whole file
 */
export async function detectType(head: Uint8Array, complete: boolean): Promise<DetectedType> {
  const found = (await fileTypeFromBuffer(head))?.ext;
  if (found === 'arw' && !(await isCameraRaw(head))) return 'tiff';
  if (found === 'heic' && isAvifToo(head)) return 'avif';
  if (found !== undefined && Object.hasOwn(TYPES_BY_EXTENSION, found))
    return TYPES_BY_EXTENSION[found] as InputType;
  if (isZip(head)) return 'zip';
  if (found === 'gz') return detectSvg(unpackHead(head), true) === 'svg' ? 'svg' : 'archive';
  if (found !== undefined && ARCHIVES.includes(found)) return 'archive';
  if (found !== undefined && found !== 'xml') return 'unknown';
  // To distinguish camera formats, `file-type` reads the first directory, which can be beyond `head`.
  if (found === undefined && isTiff(head)) return 'tiff';
  return detectSvg(head, complete);
}

/**
 * Detects the type of a file on disk.
 *
 * @param headBytes number of bytes to read. An SVG whose preamble is longer is not detected.
 */
export async function detectFileType(path: string, headBytes = DETECTION_BYTES): Promise<DetectedType> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return await detectType(buffer.subarray(0, bytesRead), bytesRead < headBytes);
  } finally {
    await file.close();
  }
}

/** Bytes of a gzip file to unpack. They expand to at most 1 MiB. */
const GZIP_HEAD_BYTES = 1024;

/** Unpacks the start of a gzip file, which can be a compressed SVG. Returns an empty array for a damaged file. */
function unpackHead(head: Uint8Array): Uint8Array {
  try {
    return gunzipSync(head.subarray(0, GZIP_HEAD_BYTES), {
      finishFlush: constants.Z_SYNC_FLUSH,
    });
  } catch {
    return new Uint8Array();
  }
}

/** Checks for a general HEIF brand (`mif1`) with `avif` among the compatible brands. */
function isAvifToo(head: Uint8Array): boolean {
  const box = Buffer.from(head.buffer, head.byteOffset, head.length);
  const brands = box.subarray(16, Math.min(box.readUInt32BE(0), 256)).toString('latin1');
  return (
    box.toString('latin1', 8, 12) === 'mif1' &&
    (brands.match(/.{4}/gs) ?? []).some((brand) => /^avi[fs]$/.test(brand))
  );
}

/** Checks for a ZIP, including documents in ZIP containers, and empty archives, which have no file header. */
function isZip(head: Uint8Array): boolean {
  const start = Buffer.from(head.subarray(0, 4)).toString('latin1');
  return ['PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08'].includes(start);
}

function isTiff(head: Uint8Array): boolean {
  const start = Buffer.from(head.subarray(0, 4)).toString('latin1');
  return ['II*\0', 'MM\0*', 'II+\0', 'MM\0+'].includes(start);
}

const NEW_SUBFILE_TYPE = 254;
const SUB_DIRECTORIES = 330;

/**
 * Checks whether the first directory is that of a camera's raw format: a preview, or one with sub-directories. `file-type` takes
 * every TIFF with PrintIM (0xC4A5) for a raw image of a Sony camera, but cameras of other vendors write it to common TIFFs.
 */
async function isCameraRaw(head: Uint8Array): Promise<boolean> {
  const bytes = new WindowReader({
    async read(buffer, offset, length, position) {
      return { bytesRead: Buffer.from(head).copy(buffer, offset, position, position + length) };
    },
  });
  const read = createEndianReader(head[0] === 0x4d);
  const layout = TIFF_LAYOUTS[(await read(bytes, 2, 2)) ?? 0];
  if (!layout) return true;
  const tags = await readIfd(bytes, read, (await read(bytes, layout.firstAt, layout.offset)) ?? 0, layout);
  return tags.has(SUB_DIRECTORIES) || ((tags.get(NEW_SUBFILE_TYPE)?.value ?? 0) & 1) !== 0;
}

/**
 * Matches one part of the preamble of an XML document. Inside a document type, every character has one way to match,
 * so that no input causes backtracking.
 */
const QUOTED = `"[^"]*"|'[^']*'`;
const COMMENT = '<!--(?:(?!-->)[^])*-->';
const SUBSET = `\\[(?:${COMMENT}|${QUOTED}|<(?!!--)|[^\\]"'<])*\\]`;
const DOCTYPE = `<!DOCTYPE(?:${QUOTED}|${SUBSET}|[^[\\]<>"'])*>`;
const PREAMBLE = new RegExp(`^(?:\\s+|<\\?[^]*?\\?>|${COMMENT}|${DOCTYPE})`);
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

/** Decodes the text of an XML file from its root element, or from the first part that is not a preamble. */
export function skipXmlPreamble(head: Uint8Array): string {
  let text = decode(head);
  for (let match = PREAMBLE.exec(text); match; match = PREAMBLE.exec(text))
    text = text.slice(match[0].length);
  return text;
}

/** Decodes XML as UTF-8, or as UTF-16 if it starts with a byte order mark. */
function decode(head: Uint8Array): string {
  const [first, second] = head;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(head);
}
