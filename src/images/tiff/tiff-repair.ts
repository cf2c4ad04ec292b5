/**
 * @module Repairs the directories of a TIFF (TIFF 6.0, section 2): removes tags that are invalid,
 * because ImageMagick rejects the file where libtiff ignores the tag, adds tags that it needs, and
 * completes palettes. If only sub-directories have pages, puts the largest first.
 */
import type { FileHandle } from 'node:fs/promises';
import { type RepairTarget, readAt, WindowReader, writeAt } from '../containers/file.ts';
import { MAX_TAGS, TAG, type Tags, TiffReader } from '../containers/ifd.ts';
import { COLOUR_MODELS, COMPRESSION, isPage, PHOTOMETRIC } from './tiff.ts';

/** Types of values that libtiff knows (TIFF 6.0, section 2; TIFF Technote 3 for the last three). */
const TYPES: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18];
const [SHORT, LONG] = [3, 4] as const;
const VALUE_BYTES = { [SHORT]: 2, [LONG]: 4 } as const;
const UNASSOCIATED_ALPHA = 2;

/** Values that are valid, of tags that have a default. */
const RANGES: Readonly<Record<number, readonly [min: number, max: number]>> = {
  [TAG.fillOrder]: [1, 2],
  [TAG.orientation]: [1, 8],
  [TAG.rowsPerStrip]: [1, Number.POSITIVE_INFINITY],
  [TAG.planarConfiguration]: [1, 2],
  [TAG.resolutionUnit]: [1, 3],
  [TAG.extraSamples]: [0, 2],
  [TAG.sampleFormat]: [1, 6],
};
/** Maximum number of values to check: those of more samples have no effect. */
const MAX_VALUES = 16;
/** Maximum number of tags in a directory that libtiff reads. */
const MAX_EXIF_TAGS = 4096;
const MAX_SHORT = 65_535;
/** Values of the palette of 8 bits. */
const MAX_PALETTE_VALUES = 3 * 256;

/**
 * Repairs the directories of a file. A directory that grows is appended to the file, unless the
 * file would exceed the limit: directories can overlap, so that a small file can have thousands of
 * large ones.
 *
 * @throws {ServiceError} DISK_FULL if the disk has no space for the new directories
 * @throws {HeaderTooComplexError} if the directories take too many reads
 */
export async function repairTiff({ file, store, maxBytes }: RepairTarget): Promise<undefined> {
  await showSubDirectory(file);
  const tiff = await TiffReader.open(new WindowReader(file));
  if (!tiff) return;
  const { layout } = tiff;
  let end = (await file.stat()).size;
  // Position of the offset of the directory, which changes if the directory before it is appended.
  let pointer: number = layout.firstAt;
  for await (const { offset, count, next } of tiff.directories()) {
    if (count > MAX_TAGS || next === undefined) return;
    await completePalette(tiff, file, offset);
    const { bytes: content } = await readAt(file, offset + layout.count, count * layout.entry);
    const repaired = await repairDirectory(tiff, content, offset, end);
    let place = offset;
    if (repaired) {
      const directory = Buffer.concat([
        tiff.encode(repaired.length / layout.entry, layout.count),
        repaired,
        tiff.encode(next, layout.offset),
      ]);
      if (repaired.length > content.length) {
        place = end + (end % 2); // a directory starts at an even offset
        if (place + directory.length > maxBytes) return;
        await store(directory.length + (end % 2));
        end = place + directory.length;
        await writeAt(file, pointer, tiff.encode(place, layout.offset));
      }
      await writeAt(file, place, directory);
    }
    pointer = place + layout.count + (repaired ?? content).length;
  }
}

/** Maximum number of sub-directories to look at. */
const MAX_SUB_DIRECTORIES = 16;

/**
 * Makes the largest page in sub-directories the first directory if all others are thumbnails, as
 * cameras and scanners write them.
 */
async function showSubDirectory(file: FileHandle): Promise<void> {
  const tiff = await TiffReader.open(new WindowReader(file));
  if (!tiff) return;
  let best: { readonly offset: number; readonly pixels: number } | undefined;
  for await (const { offset } of tiff.directories()) {
    const tags = await tiff.tags(offset);
    if (isPage(tags)) return;
    const list = tags.get(TAG.subDirectories);
    for (const place of list && !best ? await tiff.numbers(list, MAX_SUB_DIRECTORIES) : []) {
      const below = await tiff.tags(place);
      const value = (tag: number): number => below.get(tag)?.value ?? 0;
      const pixels = value(TAG.width) * value(TAG.height);
      const isPicture = isPage(below) && COLOUR_MODELS[value(TAG.photometric)] !== undefined;
      if (isPicture && pixels > (best?.pixels ?? 0)) best = { offset: place, pixels };
    }
  }
  if (best) await writeAt(file, tiff.layout.firstAt, tiff.encode(best.offset, tiff.layout.offset));
}

/**
 * Completes a palette whose colours are 8 bits and 8 zeros, as Pillow writes them. The upper 8 bits
 * are the colour for libtiff and other programs. ImageMagick scales all 16 bits, so that white
 * would be 254.
 */
async function completePalette(tiff: TiffReader, file: FileHandle, offset: number): Promise<void> {
  const palette = (await tiff.tags(offset)).get(TAG.colourMap);
  if (!palette || palette.count > MAX_PALETTE_VALUES) return;
  const values = await tiff.numbers(palette, MAX_PALETTE_VALUES);
  if (palette.width !== VALUE_BYTES[SHORT] || values.some((value) => value % 256 > 0)) return;
  await writeAt(file, palette.at, Buffer.concat(values.map((value) => tiff.encode(value + value / 256, 2))));
}

/** Returns the entries without invalid and with missing ones; undefined if they stay the same. */
async function repairDirectory(
  tiff: TiffReader,
  content: Buffer,
  offset: number,
  end: number,
): Promise<Buffer | undefined> {
  const { layout } = tiff;
  const tags = await tiff.tags(offset);
  const valid: Buffer[] = [];
  for (let at = 0; at < content.length; at += layout.entry) {
    const entry = content.subarray(at, at + layout.entry);
    if (await isValid(tiff, entry, tags, end)) valid.push(entry);
  }
  const present = valid.map((entry) => tiff.numberIn(entry, 0, 2));
  const added = missingTags(tags, present).map(({ tag, type, value }) => ({
    tag,
    entry: Buffer.concat([
      tiff.encode(tag, 2),
      tiff.encode(type, 2),
      tiff.encode(1, layout.offset),
      tiff.encode(value, VALUE_BYTES[type]),
      Buffer.alloc(layout.offset - VALUE_BYTES[type]),
    ]),
  }));
  if (added.length === 0 && valid.length * layout.entry === content.length) return undefined;
  const all = [...valid.map((entry, at) => ({ tag: present[at] as number, entry })), ...added];
  return Buffer.concat(all.sort((one, other) => one.tag - other.tag).map(({ entry }) => entry));
}

/** Checks an entry as libtiff does, which ignores what is invalid. */
async function isValid(tiff: TiffReader, entry: Buffer, tags: Tags, end: number): Promise<boolean> {
  const { layout } = tiff;
  const number = tiff.numberIn(entry, 0, 2);
  const tag = tags.get(number);
  if (!tag) return true;
  if (!TYPES.includes(tiff.numberIn(entry, 2, 2))) return false;
  const range = RANGES[number];
  if (range) {
    const values = await tiff.numbers(tag, MAX_VALUES);
    return values.every((value) => value >= range[0] && value <= range[1]);
  }
  const samples = tags.get(TAG.samplesPerPixel)?.value ?? 1;
  switch (number) {
    case TAG.minSampleValue:
    case TAG.maxSampleValue:
      return (tag.count === 1 && tag.value <= MAX_SHORT) || tag.count === samples;
    case TAG.smallestSample:
    case TAG.largestSample:
      return tag.count >= samples;
    case TAG.inkNames:
    case TAG.numberOfInks:
      return false; // names have no effect, and libtiff has strict rules for them
    case TAG.profile:
      return tag.count > 0;
    case TAG.exif:
    case TAG.gps: {
      const count = (await tiff.number(tag.value, layout.count)) ?? 0;
      const isWhole = tag.value + layout.count + count * layout.entry <= end;
      return tag.value >= layout.offset * 2 && count > 0 && count <= MAX_EXIF_TAGS && isWhole;
    }
    default:
      return true;
  }
}

interface NewTag {
  readonly tag: number;
  readonly type: keyof typeof VALUE_BYTES;
  readonly value: number;
}

/**
 * Returns tags to add, with the values that other programs assume.
 *
 * SamplesPerPixel: old-style JPEG without the tag has as many samples as their bits are stated for.
 *
 * RowsPerStrip: one strip has all rows. Without the tag, ImageMagick reads compressed pixels after
 * libtiff has converted them to RGB, but takes them for CMYK or CIELab. It always does so for JPEG.
 *
 * ExtraSamples: a fourth sample of RGB is alpha that is not premultiplied, as in Pillow and
 * libvips.
 */
function missingTags(tags: Tags, present: readonly number[]): NewTag[] {
  const value = (tag: number): number | undefined => tags.get(tag)?.value;
  const [compression, height] = [value(TAG.compression), value(TAG.height)];
  const isJpeg = compression === COMPRESSION.jpeg || compression === COMPRESSION.oldJpeg;
  const hasStrips = !tags.has(TAG.tileWidth) && !isJpeg && height !== undefined;
  const hasAlpha = value(TAG.photometric) === PHOTOMETRIC.rgb && value(TAG.samplesPerPixel) === 4;
  const bits = tags.get(TAG.bitsPerSample);
  const wanted: NewTag[] = [
    ...(compression === COMPRESSION.oldJpeg && bits
      ? [{ tag: TAG.samplesPerPixel, type: SHORT, value: bits.count } as const]
      : []),
    ...(hasStrips ? [{ tag: TAG.rowsPerStrip, type: LONG, value: height } as const] : []),
    ...(hasAlpha ? [{ tag: TAG.extraSamples, type: SHORT, value: UNASSOCIATED_ALPHA } as const] : []),
  ];
  return wanted.filter(({ tag }) => !present.includes(tag));
}
