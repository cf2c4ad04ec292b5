/**
 * @module EXIF, which is a TIFF directory without an image (EXIF 2.32, 4.5), and the metadata of an
 * image that is rotated upright. ImageMagick resets the orientation in EXIF, but changes neither
 * the thumbnail nor the size that EXIF states. Version 6 also keeps the orientation in XMP, so some
 * viewers would rotate the result again.
 */
import { open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { InputType } from '../tables/formats.ts';
import {
  type ByteReader,
  bigEndian,
  bufferReader,
  readAt,
  WindowReader,
  writeAt,
} from './containers/file.ts';
import { TAG, type Tags, TiffReader } from './containers/ifd.ts';
import { jpegSegments, type Part, pngChunks, riffChunks } from './containers/parts.ts';
import {
  combineOrientations,
  type ImageFacts,
  type ImageInfo,
  type Orientation,
  type Scale,
  swapsSides,
} from './image-info.ts';
import { resolutionOf, tiffUnit } from './resolution.ts';
import { correctXmp } from './xmp-edits.ts';

/** Marker before EXIF in a JPEG. Some writers put it before EXIF in other formats. */
const EXIF_MARKER = Buffer.from('Exif\0\0', 'latin1');

/** Tags of the width and the height, in the first directory and in that of EXIF. */
const SIZE_TAGS = [
  [TAG.width, TAG.height],
  [TAG.exifWidth, TAG.exifHeight],
] as const;

/** First bytes of EXIF after its marker. Browsers ignore EXIF with others. */
export const TIFF_HEADERS = ['II*\0', 'MM\0*'];

/** Reads the orientation and the resolution from the EXIF at `start`. */
export async function readExif(
  bytes: ByteReader,
  start: number,
): Promise<Pick<ImageFacts, 'orientation' | 'resolution'>> {
  const head = await bytes.read(start, EXIF_MARKER.length);
  const at = head.equals(EXIF_MARKER) ? start + EXIF_MARKER.length : start;
  const header = await bytes.read(at, 4);
  if (!TIFF_HEADERS.includes(header.toString('latin1'))) return {};
  const tiff = new TiffReader(bytes, header[0]);
  const tags = await tiff.tags(at + ((await tiff.number(at + 4, 4)) ?? 0));
  const value = tags.get(TAG.orientation)?.value;
  const orientation = isOrientation(value) ? value : undefined;
  return { orientation, ...(await readResolution(tiff, tags, at)) };
}

/** Reads the resolution in a directory of TIFF or EXIF, whose header is at `start`. */
export async function readResolution(
  tiff: TiffReader,
  tags: Tags,
  start = 0,
): Promise<Pick<ImageFacts, 'resolution'>> {
  const [x, y] = [tags.get(TAG.resolutionX), tags.get(TAG.resolutionY)];
  if (!x || !y) return {};
  const unit = tiffUnit(tags.get(TAG.resolutionUnit)?.value);
  const [[across], [down]] = [await tiff.fractions(x, 1, start), await tiff.fractions(y, 1, start)];
  return resolutionOf(across, down, unit);
}

/** Checks that a tag value is an orientation. Files contain others than 1 to 8. */
export function isOrientation(value: number | undefined): value is Orientation {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 8;
}

/** Maximum number of parts, and of orientations in XMP, to adjust, since many take long. */
const MAX_PARTS = 100;
const MAX_ORIENTATIONS = 1000;

/** A part of a file with metadata. The name of a chunk of a PNG is part of its checksum. */
interface MetadataPart extends Pick<Part, 'name' | 'offset' | 'length'> {
  readonly kind: 'exif' | 'xmp';
}

/**
 * Corrects the metadata of the image at `path` in place, which all results share. If it will be
 * rotated: removes the EXIF thumbnail, corrects width and height in EXIF, or removes them if only
 * some results exchange these, and resets the orientation in XMP. {@link correctXmp} corrects the
 * rest of XMP.
 *
 * @param turns what is done to the upright image for each result
 * @param scale see {@link correctXmp}
 */
export async function correctMetadata(
  path: string,
  { type, orientation = 1, pages, metadata }: ImageInfo,
  turns: readonly Orientation[],
  scale: Scale | undefined,
): Promise<void> {
  const isRotated = [orientation, ...turns, ...(pages ?? []).map((page) => page.orientation ?? 1)].some(
    (each) => each !== 1,
  );
  const swaps = new Set(turns.map((turn) => swapsSides(combineOrientations(orientation, turn))));
  const correctSizes = swaps.size > 1 ? removeSizes : swaps.has(true) ? swapSizes : undefined;
  const partsOf = PARTS[type];
  if (!partsOf || !(isRotated || metadata?.includes('xmp'))) return;
  await using file = await open(path, 'r+');
  const { size } = await file.stat();
  const parts: MetadataPart[] = [];
  for await (const part of partsOf(new WindowReader(file), size)) {
    parts.push(part);
    if (parts.length === MAX_PARTS) break;
  }
  for (const { kind, name, offset, length } of parts) {
    const { bytes } = await readAt(file, offset, length);
    const before = Buffer.from(bytes);
    if (kind === 'xmp') correctXmp(bytes, scale);
    if (kind === 'xmp' && isRotated) resetXmpOrientation(bytes);
    if (kind === 'exif' && isRotated) await makeExifUpright(bytes, correctSizes);
    if (bytes.equals(before)) continue;
    await writeAt(file, offset, bytes);
    if (type === 'png') await writeAt(file, offset + length, bigEndian(crc32(bytes, crc32(name)), 4));
  }
}

/** Yields the complete metadata of a file by its type. */
const PARTS: Partial<
  Record<InputType, (bytes: ByteReader, size: number) => AsyncIterable<MetadataPart> | Iterable<MetadataPart>>
> = {
  async *jpg(bytes, size) {
    for await (const { marker, offset, length, end } of jpegSegments(bytes)) {
      if (marker !== 0xe1 || end > size) continue;
      const isExif = (await bytes.read(offset, 4)).toString('latin1') === 'Exif';
      yield { name: 'APP1', kind: isExif ? 'exif' : 'xmp', offset, length };
    }
  },
  png: (bytes, size) => chunksWith(pngChunks(bytes), { eXIf: 'exif', iTXt: 'xmp' }, size),
  webp: (bytes, size) => chunksWith(riffChunks(bytes), { EXIF: 'exif', 'XMP ': 'xmp' }, size),
  async *tiff(bytes, size) {
    const tiff = await TiffReader.open(bytes);
    if (!tiff) return;
    for await (const { offset } of tiff.directories()) {
      const { value = 0, count = 0 } = (await tiff.tags(offset)).get(TAG.xmp) ?? {};
      if (count > 0 && value + count <= size)
        yield { name: 'TIFF', kind: 'xmp', offset: value, length: count };
    }
  },
};

async function* chunksWith(
  chunks: AsyncIterable<Part>,
  kinds: Readonly<Record<string, MetadataPart['kind']>>,
  size: number,
): AsyncGenerator<MetadataPart> {
  for await (const chunk of chunks) {
    const kind = kinds[chunk.name];
    if (kind && chunk.end <= size) yield { ...chunk, kind };
  }
}

/** Returns EXIF without the marker. */
export const withoutMarker = (body: Buffer): Buffer =>
  body.subarray(0, EXIF_MARKER.length).equals(EXIF_MARKER) ? body.subarray(EXIF_MARKER.length) : body;

/** Changes the width and the height that a directory of EXIF states. */
type CorrectSizes = (exif: Buffer, tiff: TiffReader, directory: number) => Promise<void>;

/** Overwrites the thumbnail with zeros, and corrects the stated width and height. */
async function makeExifUpright(body: Buffer, correctSizes: CorrectSizes | undefined): Promise<void> {
  const exif = withoutMarker(body);
  const tiff = new TiffReader(bufferReader(exif), exif[0]);
  const first = (await tiff.first()) ?? 0;
  const exifAt = (await tiff.tags(first)).get(TAG.exif)?.value ?? 0;
  await correctSizes?.(exif, tiff, first);
  if (exifAt > 0) await correctSizes?.(exif, tiff, exifAt);
  const thumbnail = await findThumbnail(tiff, first);
  if (!thumbnail) return;
  const { start, length, linkAt } = thumbnail;
  const end = Math.min(exif.length, start + length);
  if (start > 0 && start < end) exif.fill(0, start, end);
  exif.fill(0, linkAt, linkAt + 4); // ends the list of directories
}

/** Exchanges types, counts and values of the two entries. */
const swapSizes: CorrectSizes = async (exif, tiff, directory) => {
  const tags = await tiff.tags(directory);
  for (const [widthTag, heightTag] of SIZE_TAGS) {
    const [width, height] = [widthTag, heightTag].map((tag) => {
      const { entryAt } = tags.get(tag) ?? {};
      return entryAt === undefined ? undefined : exif.subarray(entryAt + 2, entryAt + 12);
    });
    if (!width || !height) continue;
    const stated = Buffer.from(width);
    height.copy(width);
    stated.copy(height);
  }
};

/** Moves the entries that follow, and the offset of the next directory, over each entry. */
const removeSizes: CorrectSizes = async (exif, tiff, directory) => {
  const { count: countBytes, entry, offset } = tiff.layout;
  for (const tag of SIZE_TAGS.flat()) {
    const { entryAt } = (await tiff.tags(directory)).get(tag) ?? {};
    if (entryAt === undefined) continue;
    const count = (await tiff.number(directory, countBytes)) ?? 0;
    exif.copyWithin(entryAt, entryAt + entry, directory + countBytes + count * entry + offset);
    tiff.encode(count - 1, countBytes).copy(exif, directory);
  }
};

/** Finds the thumbnail in the second directory, and where its offset is (EXIF 2.32, 4.5.2). */
export async function findThumbnail(tiff: TiffReader, first: number) {
  const { count: countBytes, entry } = tiff.layout;
  const count = (await tiff.number(first, countBytes)) ?? 0;
  const linkAt = first + countBytes + count * entry;
  const second = await tiff.number(linkAt, 4);
  if (!second) return undefined;
  const tags = await tiff.tags(second);
  const [start = 0, length = 0] = [TAG.thumbnail, TAG.thumbnailLength].map((tag) => tags.get(tag)?.value);
  return { start, length, linkAt };
}

/** The orientation as an attribute or an element (XMP part 2, 8.4). */
const XMP_ORIENTATION = /tiff:Orientation(?:\s*=\s*["']|>)\s*([2-8])/g;

function resetXmpOrientation(body: Buffer): void {
  if (!body.includes('tiff:Orientation')) return;
  let count = 0;
  for (const match of body.toString('latin1').matchAll(XMP_ORIENTATION)) {
    if (count === MAX_ORIENTATIONS) return;
    body.write('1', match.index + match[0].length - 1, 'latin1');
    count += 1;
  }
}
