/** @module Reads and repairs a PSD (Adobe Photoshop File Formats Specification, 2019). */
import { readProfile } from './colour/icc.ts';
import {
  bigEndian,
  type RepairTarget,
  readAt,
  replaceContent,
  WindowReader,
  writeAt,
} from './containers/file.ts';
import { countBytes, type FileRange, type Piece, readPieces } from './containers/pieces.ts';
import type { ImageFacts, MetadataKind, PixelFormat, Profile } from './image-info.ts';

const NO_BYTES = Buffer.alloc(0);

/** Maximum number of image resources, and of blocks with other information, to read. */
const MAX_RESOURCES = 1000;
const HEADER_BYTES = 26;
/** Bytes of the table of an indexed image. */
const TABLE_BYTES = 768;
/** Maximum number of layers that Photoshop allows. */
const MAX_LAYERS = 8000;

const MODE = { grey: 1, indexed: 2, cmyk: 4, duotone: 8, lab: 9 } as const;
/** Colour modes that ImageMagick decodes correctly. */
const READABLE_MODES = [0, 1, 2, 3, 4, 8, 9];
/** Colour spaces by the colour mode, and their numbers of channels. */
const SPACES: Readonly<Record<number, PixelFormat['colourSpace']>> = {
  0: 'grey',
  1: 'grey',
  2: 'rgb',
  3: 'rgb',
  4: 'cmyk',
  8: 'grey',
  9: 'lab',
};
const CHANNELS: Readonly<Record<PixelFormat['colourSpace'], number>> = { grey: 1, rgb: 3, lab: 3, cmyk: 4 };
/** Bits per channel that ImageMagick decodes correctly. */
const READABLE_DEPTHS = [1, 8, 16];

const RESOURCE = {
  iptc: 1028,
  profile: 1039,
  transparentIndex: 1047,
  version: 1057,
  exif: 1058,
  xmp: 1060,
} as const;
const METADATA: Readonly<Record<number, MetadataKind>> = {
  [RESOURCE.iptc]: 'iptc',
  [RESOURCE.exif]: 'exif',
  [RESOURCE.xmp]: 'xmp',
};

/** Version of a PSB, which has longer numbers. */
const PSB = 2;

/** Offsets in the header (section "File Header Section"). */
const AT = { version: 4, channels: 12, height: 14, width: 18, depth: 22, mode: 24 } as const;

/** Reads size, colours and metadata, and whether the file has a merged image of its layers. */
export async function readPsd(bytes: WindowReader): Promise<ImageFacts> {
  const header = Buffer.from(await bytes.read(0, HEADER_BYTES));
  if (header.length < HEADER_BYTES) return {};
  const [depth, mode] = [header.readUInt16BE(AT.depth), header.readUInt16BE(AT.mode)];
  const sections = await findSections(bytes, header);
  const { count } = await findLayers(bytes, sections);
  const readable = READABLE_MODES.includes(mode) && READABLE_DEPTHS.includes(depth);
  const colourSpace = SPACES[mode] ?? 'rgb';
  return {
    pixels: { alpha: header.readUInt16BE(AT.channels) > CHANNELS[colourSpace], bits: depth, colourSpace },
    width: header.readUInt32BE(AT.width),
    height: header.readUInt32BE(AT.height),
    deep: depth === 16,
    cmyk: mode === MODE.cmyk,
    lab: mode === MODE.lab,
    ...(!readable && { kinds: ['psd-mode'] as const }),
    ...(Math.abs(count) > MAX_LAYERS && { kinds: ['psd-layers'] as const }),
    ...(await readResources(bytes, sections.resources, sections.layers)),
  };
}

/** Offsets of the sections after the table of colours. The first two start with their length. */
interface Sections {
  readonly resources: number;
  readonly layers: number;
  readonly merged: number;
  /** Bytes of the lengths in the section of the layers: those of a PSB are longer. */
  readonly lengthBytes: 4 | 8;
}

async function findSections(bytes: WindowReader, header: Buffer): Promise<Sections> {
  const lengthBytes = header.readUInt16BE(AT.version) === PSB ? 8 : 4;
  const resources = HEADER_BYTES + 4 + (await lengthAt(bytes, HEADER_BYTES));
  const layers = resources + 4 + (await lengthAt(bytes, resources));
  const merged = layers + lengthBytes + (await lengthAt(bytes, layers, lengthBytes));
  return { resources, layers, merged, lengthBytes };
}

interface LayerList {
  /** Number of layers: 0 if there is no list, negative if the merged image has transparency. */
  readonly count: number;
  /** Offset of the number. */
  readonly at: number;
  /** Whether the merged image has transparency. */
  readonly hasAlpha: boolean;
}

/** Blocks of layers of 16 and 32 bits, and empty ones of a merged image with transparency. */
const LAYER_BLOCKS = ['Layr', 'Lr16', 'Lr32'];
const ALPHA_BLOCKS = ['Mtrn', 'Mt16', 'Mt32'];
/** Other blocks whose length has 8 bytes in a PSB (section "Additional Layer Information"). */
const LONG_BLOCKS = [
  'LMsk',
  'Alph',
  'FMsk',
  'lnk2',
  'FEid',
  'FXid',
  'PxSD',
  ...LAYER_BLOCKS,
  ...ALPHA_BLOCKS,
];
/** Bytes of the signature and the key of a block. */
const BLOCK_HEAD_BYTES = 8;

/**
 * Finds the layers: in their list, or, as Photoshop writes those of 16 bits per channel, in a block
 * behind the empty list and the mask of all layers.
 */
async function findLayers(bytes: WindowReader, sections: Sections): Promise<LayerList> {
  const { layers, merged, lengthBytes } = sections;
  const list = layers + lengthBytes;
  const listAt = async (at: number, isTransparent: boolean): Promise<LayerList> => {
    const number = at + 2 <= merged ? await bytes.read(at, 2) : NO_BYTES;
    const count = number.length < 2 ? 0 : number.readInt16BE();
    return { count, at, hasAlpha: isTransparent || count < 0 };
  };
  if ((await lengthAt(bytes, list, lengthBytes)) > 0) return listAt(list + lengthBytes, false);
  const mask = list + lengthBytes;
  let hasAlpha = false;
  let at = mask + 4 + (await lengthAt(bytes, mask));
  for (let count = 0; count < MAX_RESOURCES && at < merged; count += 1) {
    const head = (await bytes.read(at, BLOCK_HEAD_BYTES)).toString('latin1');
    const key = head.slice(4);
    if (!head.startsWith('8B')) break;
    const width = LONG_BLOCKS.includes(key) ? lengthBytes : 4;
    const content = at + BLOCK_HEAD_BYTES + width;
    if (ALPHA_BLOCKS.includes(key)) hasAlpha = true;
    if (LAYER_BLOCKS.includes(key)) return listAt(content, hasAlpha);
    at = content + (await lengthAt(bytes, at + BLOCK_HEAD_BYTES, width));
  }
  return { count: 0, at: 0, hasAlpha };
}

/** Reads a length of 4 or 8 bytes; 0 at the end of the file. */
async function lengthAt(bytes: WindowReader, offset: number, width: 4 | 8 = 4): Promise<number> {
  const length = await bytes.read(offset, width);
  if (length.length < width) return 0;
  return width === 4 ? length.readUInt32BE() : Number(length.readBigUInt64BE());
}

/** Reads the resources: signature, ID, name, length and data; name and data are padded to even. */
async function readResources(bytes: WindowReader, start: number, end: number): Promise<ImageFacts> {
  const metadata = new Set<MetadataKind>();
  let profile: Profile = 'none';
  let merged = true;
  let transparentColour: string | undefined;
  let offset = start + 4;
  for (let count = 0; count < MAX_RESOURCES && offset < end; count += 1) {
    const head = await bytes.read(offset, 7);
    if (head.length < 7 || head.toString('latin1', 0, 4) !== '8BIM') break;
    const number = head.readUInt16BE(4);
    const nameBytes = ((head[6] as number) + 2) & ~1;
    const length = await lengthAt(bytes, offset + 6 + nameBytes);
    const data = offset + 10 + nameBytes;
    const kind = METADATA[number];
    if (kind) metadata.add(kind);
    if (number === RESOURCE.profile) profile = await readProfile(bytes, data, length);
    if (number === RESOURCE.transparentIndex) transparentColour = await readTableColour(bytes, data);
    // A version of four bytes, then a flag for a real merged image.
    if (number === RESOURCE.version) merged = (await bytes.read(data, 5))[4] !== 0;
    offset = data + length + (length & 1);
  }
  return {
    profile,
    metadata: [...metadata],
    transparentColour,
    ...(!merged && { kinds: ['psd-without-merged-image'] as const }),
  };
}

/**
 * Reads the index of a transparent colour at an offset, and that colour from the table of an
 * indexed image: 256 reds, then greens, then blues. Returns undefined without such a table.
 */
async function readTableColour(bytes: WindowReader, at: number): Promise<string | undefined> {
  const index = Buffer.from(await bytes.read(at, 2));
  if (index.length < 2 || index.readUInt16BE() > 255 || (await lengthAt(bytes, HEADER_BYTES)) < TABLE_BYTES)
    return undefined;
  const table = await bytes.read(HEADER_BYTES + 4, TABLE_BYTES);
  const colour = [0, 256, 512].map((start) => table[start + index.readUInt16BE()] ?? 0);
  return `#${Buffer.from(colour).toString('hex')}`;
}

/**
 * Repairs a PSD that ImageMagick would reject or show wrongly: hides its layers, and extra channels
 * of the merged image.
 *
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function repairPsd(target: RepairTarget): Promise<undefined> {
  const bytes = new WindowReader(target.file);
  const { bytes: header } = await readAt(target.file, 0, HEADER_BYTES);
  const sections = await findSections(bytes, header);
  const layers = await findLayers(bytes, sections);
  await hideLayers(target, layers);
  await hideExtraChannels(target, header, sections, layers.hasAlpha);
}

/**
 * Reduces the layer count to one. Only the merged image is converted, but ImageMagick 7 counts
 * layers as frames and rejects too many. A file with more layers than Photoshop allows is not
 * changed, and is rejected later.
 */
async function hideLayers({ file }: RepairTarget, { count, at }: LayerList): Promise<void> {
  const one = Buffer.alloc(2);
  one.writeInt16BE(Math.sign(count));
  if (Math.abs(count) > 1 && Math.abs(count) <= MAX_LAYERS) await writeAt(file, at, one);
}

/** Maximum number of channels, and maximum number of rows of an image that can be converted. */
const MAX_CHANNELS = 56;
const MAX_ROWS = 65_535;
/** Compressions of the merged image: none, and PackBits, which lists the lengths of rows first. */
const COMPRESSION = { none: 0, packBits: 1 } as const;

/**
 * Removes channels of the merged image that are neither colours nor transparency, such as spot
 * colours: ImageMagick 6 would use one as the transparency of greys, and 7 would write them to a
 * TIFF. Gives indexed colours the three channels that 6 requires. Duotones become the greys as
 * which they are shown, because 7 ignores their transparency. Does not change an incomplete file.
 */
async function hideExtraChannels(
  target: RepairTarget,
  header: Buffer,
  { resources, merged }: Sections,
  hasAlpha: boolean,
): Promise<void> {
  const { path, maxBytes } = target;
  const [mode, stored] = [header.readUInt16BE(AT.mode), header.readUInt16BE(AT.channels)];
  const shown = shownChannels(mode, hasAlpha);
  const isRight = shown.length === stored && !(mode === MODE.duotone && hasAlpha);
  if (isRight || shown.length === 0 || !shown.every((channel) => channel < stored)) return;
  const channels = await findChannels(target, header, merged);
  if (!channels) return;
  const kept = shown.map((channel) => channels[channel] as StoredChannel);
  header.writeUInt16BE(shown.length, AT.channels);
  if (mode === MODE.duotone) header.writeUInt16BE(MODE.grey, AT.mode);
  const pieces: Piece[] = [
    header,
    mode === MODE.duotone ? bigEndian(0, 4) : { path, from: HEADER_BYTES, to: resources },
    { path, from: resources, to: merged + 2 },
    ...kept.map(({ table }) => table),
    ...kept.map(({ data }) => data),
  ];
  const size = countBytes(pieces);
  if (size <= maxBytes) await replaceContent(target, readPieces(pieces), size);
}

/** Returns the channels that a repaired file has; none if ImageMagick cannot decode the mode. */
function shownChannels(mode: number, hasAlpha: boolean): number[] {
  if (mode === MODE.indexed) return [0, 0, 0];
  const colours = SPACES[mode];
  const length = colours ? CHANNELS[colours] + (hasAlpha ? 1 : 0) : 0;
  return Array.from({ length }, (_, channel) => channel);
}

/** The lengths of the rows of a channel, if it is compressed, and its samples. */
interface StoredChannel {
  readonly table: Buffer;
  readonly data: FileRange;
}

/**
 * Finds the channels of the merged image, which starts at `merged`. Returns undefined if the file
 * does not contain all of them, or if they are compressed in a way that Photoshop does not use.
 */
async function findChannels(
  { path, file }: RepairTarget,
  header: Buffer,
  merged: number,
): Promise<StoredChannel[] | undefined> {
  const [count, depth] = [header.readUInt16BE(AT.channels), header.readUInt16BE(AT.depth)];
  const [height, width] = [header.readUInt32BE(AT.height), header.readUInt32BE(AT.width)];
  if (count > MAX_CHANNELS || height > MAX_ROWS) return undefined;
  const { size } = await file.stat();
  const compression = (await readAt(file, merged, 2)).bytes.readUInt16BE();
  const isPacked = compression === COMPRESSION.packBits;
  const rowBytes = Math.ceil((width * depth) / 8);
  const numberBytes = header.readUInt16BE(AT.version) === PSB ? 4 : 2;
  const tableBytes = isPacked ? numberBytes * height : 0;
  const { bytes: table } = await readAt(file, merged + 2, tableBytes * count);
  let start = merged + 2 + table.length;
  const channels = Array.from({ length: count }, (_, channel): StoredChannel => {
    const rows = table.subarray(tableBytes * channel, tableBytes * (channel + 1));
    let length = isPacked ? 0 : height * rowBytes;
    for (let at = 0; at < rows.length; at += numberBytes) length += rows.readUIntBE(at, numberBytes);
    start += length;
    return { table: rows, data: { path, from: start - length, to: start } };
  });
  return start <= size && (isPacked || compression === COMPRESSION.none) ? channels : undefined;
}
