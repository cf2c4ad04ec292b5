/**
 * @module Reads the sequence headers of HEVC and AV1 in HEIC and AVIF files: the sizes of coded
 * images, which are compared with the sizes and tiles that the file declares, and the range of
 * greys.
 */
import { type BitReader, readBits } from '../containers/bits.ts';
import type { ByteReader } from '../containers/file.ts';
import type { Size } from '../image-info.ts';
import { declaredSize, findNeeded, type HeifMeta, readItem, readNumber } from './heif-items.ts';

/** Side of the largest coding block in pixels. Encoders pad an image to whole blocks. */
const MAX_BLOCK = 64;

/**
 * Checks whether a coded image has another size than its property `ispe` declares, or whether the
 * tiles of a grid do not cover it. Decoders leave the rest of such a grid blank, and allocate more
 * memory than the declared size requires. A missing field is not a contradiction. Items of which
 * the primary image is not made, such as gain maps and thumbnails, are not decoded.
 */
export async function hasContradictorySizes(meta: HeifMeta, bytes: ByteReader): Promise<boolean> {
  const { items, primary, references } = meta;
  const decoded = primary === undefined ? undefined : findNeeded(meta, primary);
  const sizesOf = sizesByItem(meta);
  const read = (id: number, length: number) => readItem(meta, bytes, id, length);
  // The last item of an ID counts.
  for (const [id, type] of new Map(items.map((item) => [item.id, item.type]))) {
    if (decoded?.has(id) === false) continue;
    const { declared, hevc } = sizesOf(id);
    const av1 = type === 'av01' ? av1Size(await read(id, AV1_HEADER_BYTES)) : undefined;
    const coded = [...hevc, ...(av1 ? [av1] : [])];
    if (declared && !coded.every((size) => isPadded(size, declared))) return true;
    if (type !== 'grid') continue;
    const grid = parseGrid(await read(id, GRID_BYTES));
    const tiles = references.find((one) => one.type === 'dimg' && one.from === id);
    const tileSizes = tiles?.to.flatMap((tile) => sizesOf(tile).declared ?? []) ?? [];
    if (grid && !isCovered(grid, tiles?.count, tileSizes)) return true;
  }
  return false;
}

interface ItemSizes {
  readonly declared?: Size | undefined;
  /** Bounds of the sizes in each configuration of HEVC. */
  readonly hevc: readonly Size[];
}

function sizesByItem({ properties, associations }: HeifMeta): (id: number) => ItemSizes {
  const stated = properties.map((property) => ({
    declared: declaredSize(property),
    hevc: property.name === 'hvcC' ? boundsOf(hevcSizes(property.body)) : [],
  }));
  const sizes = [...associations].map(([id, { indexes }]) => {
    const own = indexes.flatMap((index) => stated[index - 1] ?? []);
    const { declared } = own.find((property) => property.declared) ?? {};
    return [id, { declared, hevc: own.flatMap(({ hevc }) => hevc) }] as const;
  });
  const byItem = new Map<number, ItemSizes>(sizes);
  return (id) => byItem.get(id) ?? { hevc: [] };
}

/**
 * Returns the smallest and the largest sides, which are padded correctly only if all sizes are.
 * Many items can refer to a configuration with many sizes.
 */
function boundsOf(sizes: readonly Size[]): readonly Size[] {
  if (sizes.length < 2) return sizes;
  const bound = (choose: typeof Math.min): Size => ({
    width: choose(...sizes.map(({ width }) => width)),
    height: choose(...sizes.map(({ height }) => height)),
  });
  return [bound(Math.min), bound(Math.max)];
}

/** Checks whether a coded size is the declared one, padded to whole blocks. */
function isPadded(coded: Size, declared: Size): boolean {
  const added = [coded.width - declared.width, coded.height - declared.height];
  return added.every((pixels) => pixels >= 0 && pixels < MAX_BLOCK);
}

/** Checks whether every place has a tile, and whether the tiles are as large as the grid. */
function isCovered(
  { rows, columns, width, height }: Grid,
  count: number | undefined,
  tiles: readonly Size[],
): boolean {
  if (count !== rows * columns) return false;
  return tiles.every((tile) => columns * tile.width >= width && rows * tile.height >= height);
}

/** Length of the data of a grid with 32-bit sizes. */
const GRID_BYTES = 12;

interface Grid extends Size {
  readonly rows: number;
  readonly columns: number;
}

/** Parses the data of a grid (ISO/IEC 23008-12, section 6.6.2.3). */
function parseGrid(data: Buffer): Grid | undefined {
  const [, flags = 0, rows = 0, columns = 0] = data;
  const length = (flags & 1) === 1 ? 4 : 2;
  const [width, height] = [readNumber(data, 4, length), readNumber(data, 4 + length, length)];
  if (width === undefined || height === undefined) return undefined;
  return { rows: rows + 1, columns: columns + 1, width, height };
}

/** Maximum number of arrays and of units in a configuration. */
const MAX_UNITS = 100;
/** Type of a unit that holds a sequence parameter set (ITU-T H.265, table 7-1). */
const SEQUENCE_PARAMETERS = 33;

/**
 * Reads the sizes in the sequence parameter sets of an `hvcC` box (ISO/IEC 14496-15, section
 * 8.3.3.1), before the decoder crops the image to its conformance window.
 */
export function hevcSizes(hvcC: Buffer): Size[] {
  const sizes: Size[] = [];
  let at = 23;
  for (let array = 0; array < Math.min(hvcC[22] ?? 0, MAX_UNITS) && at + 3 <= hvcC.length; array += 1) {
    const type = (hvcC[at] as number) & 63;
    const count = hvcC.readUInt16BE(at + 1);
    at += 3;
    for (let unit = 0; unit < Math.min(count, MAX_UNITS) && at + 2 <= hvcC.length; unit += 1) {
      const length = hvcC.readUInt16BE(at);
      const size = readBits(
        withoutEmulationPrevention(hvcC.subarray(at + 2, at + 2 + length)),
        'high',
        readSequenceParameters,
      );
      if (type === SEQUENCE_PARAMETERS && size) sizes.push(size);
      at += 2 + length;
    }
  }
  return sizes;
}

/** Reads the start of a sequence parameter set (ITU-T H.265, sections 7.3.2.2 and 7.3.3). */
function readSequenceParameters(bits: BitReader): Size {
  bits.skip(16 + 4); // header of the unit, and the number of the video parameter set
  const subLayers = bits.read(3);
  bits.skip(1 + 88 + 8); // nesting, general profile and level
  const present = Array.from({ length: subLayers }, () => [bits.flag(), bits.flag()] as const);
  if (subLayers > 0) bits.skip(2 * (8 - subLayers));
  for (const [profile, level] of present) bits.skip((profile ? 88 : 0) + (level ? 8 : 0));
  bits.readExpGolomb(); // number of this set
  if (bits.readExpGolomb() === 3) bits.skip(1); // 4:4:4 may have separate planes
  return { width: bits.readExpGolomb(), height: bits.readExpGolomb() };
}

/** Removes the byte 3 after two bytes 0, which prevents start codes (ITU-T H.265, 7.4.2). */
function withoutEmulationPrevention(unit: Buffer): Buffer {
  return Buffer.from(unit.filter((byte, at) => !(byte === 3 && unit[at - 1] === 0 && unit[at - 2] === 0)));
}

/** Bytes of AV1 data that hold the sequence header, which is near the start. */
const AV1_HEADER_BYTES = 256;
/** Types of units (AV1 Bitstream & Decoding Process Specification, section 6.2.2). */
const SEQUENCE_HEADER = 1;

/** Reads the size in the sequence header of an AV1 image; undefined if there is none. */
export const av1Size = (data: Buffer): Size | undefined =>
  readAv1(data, (bits) => readSequenceHeader(bits).size);

/** Reads whether greys of an AV1 image have the full range; undefined if it has colours. */
export async function readGreyRange(
  meta: HeifMeta,
  bytes: ByteReader,
  id: number,
): Promise<boolean | undefined> {
  return readAv1(await readItem(meta, bytes, id, AV1_HEADER_BYTES), readIsFullRange);
}

/** Reads from the sequence header at the start of AV1 data; undefined if there is none. */
function readAv1<T>(data: Buffer, read: (bits: BitReader) => T): T | undefined {
  for (let at = 0; at + 2 <= data.length; ) {
    const header = data[at] as number;
    const type = (header >> 3) & 15;
    const sizeAt = at + ((header & 4) === 0 ? 1 : 2);
    const hasSize = (header & 2) !== 0;
    const { value, end } = hasSize ? readLeb128(data, sizeAt) : { value: data.length, end: sizeAt };
    if (type === SEQUENCE_HEADER) return readBits(data.subarray(end), 'high', read);
    at = end + value;
  }
  return undefined;
}

/** Reads a number of 7 bits per byte, the least significant first (section 4.10.5). */
function readLeb128(data: Buffer, start: number): { value: number; end: number } {
  let value = 0;
  for (let at = start; at < start + 8; at += 1) {
    const byte = data[at] ?? 0;
    value += (byte & 127) * 2 ** (7 * (at - start));
    if (byte < 128) return { value, end: at + 1 };
  }
  return { value, end: start + 8 };
}

/** Reads the start of a sequence header (sections 5.5.1 to 5.5.4). */
function readSequenceHeader(bits: BitReader): { profile: number; isReduced: boolean; size: Size } {
  const profile = bits.read(3);
  bits.skip(1); // whether it is a still picture
  const isReduced = bits.flag();
  if (isReduced)
    bits.skip(5); // level
  else skipOperatingPoints(bits);
  const [widthBits, heightBits] = [bits.read(4) + 1, bits.read(4) + 1];
  return { profile, isReduced, size: { width: bits.read(widthBits) + 1, height: bits.read(heightBits) + 1 } };
}

/** Reads up to the range of the greys (sections 5.5.1 and 5.5.2); undefined if it has colours. */
function readIsFullRange(bits: BitReader): boolean | undefined {
  const { profile, isReduced } = readSequenceHeader(bits);
  if (!isReduced && bits.flag()) bits.skip(4 + 3); // lengths of frame numbers
  bits.skip(3); // large blocks, and two filters
  if (!isReduced) skipTools(bits);
  bits.skip(3); // three more filters
  const isDeep = bits.flag();
  if (profile === 2 && isDeep) bits.skip(1); // 12 bits
  if (profile === 1 || !bits.flag()) return undefined; // not a single channel
  if (bits.flag()) bits.skip(3 * 8); // code points
  return bits.flag();
}

/** Skips the tools of a sequence of several pictures. */
function skipTools(bits: BitReader): void {
  bits.skip(4); // compound modes, warped motion and dual filters
  const hasOrder = bits.flag();
  if (hasOrder) bits.skip(2);
  const forcesScreenTools = bits.flag() || bits.flag();
  if (forcesScreenTools && !bits.flag()) bits.skip(1); // whole vectors
  if (hasOrder) bits.skip(3);
}

function skipOperatingPoints(bits: BitReader): void {
  let delayBits = 0;
  if (bits.flag()) {
    bits.skip(32 + 32); // ticks
    if (bits.flag()) bits.readExpGolomb(); // ticks per picture
    if (bits.flag()) {
      delayBits = bits.read(5) + 1;
      bits.skip(32 + 5 + 5);
    }
  }
  const hasDisplayDelay = bits.flag();
  const count = bits.read(5) + 1;
  for (let point = 0; point < count; point += 1) {
    bits.skip(12);
    if (bits.read(5) > 7) bits.skip(1); // levels above 7 have a tier
    if (delayBits > 0 && bits.flag()) bits.skip(2 * delayBits + 1);
    if (hasDisplayDelay && bits.flag()) bits.skip(4);
  }
}
