/**
 * @module Reads the boxes of a JPEG 2000 file (ISO/IEC 15444-1, annex I) and its codestream header
 * (annex A), and rewrites headers that ImageMagick misreads: declares alpha and colours that the
 * file leaves out, and divides sampling factors that all components share.
 */
import type { FileHandle } from 'node:fs/promises';
import { readColourSpace, readProfile } from './colour/icc.ts';
import {
  bigEndian,
  type RepairTarget,
  readAt,
  replaceRange,
  WindowReader,
  writeAt,
} from './containers/file.ts';
import { type Box, boxes, encodeBox, findBox, type Part, parseBoxes } from './containers/parts.ts';
import type { Area, ImageFacts, MetadataKind, PixelFormat } from './image-info.ts';

/** Markers SOC and SIZ, with which every codestream starts. */
const CODESTREAM_START = Buffer.from('ff4fff51', 'hex');

/** Kinds of metadata by the UUID of their box, in hex. */
const METADATA: Readonly<Record<string, MetadataKind>> = {
  '4a706754696666457869662d3e4a5032': 'exif', // "JpgTiffExif->JP2"
  be7acfcb97a942e89c71999491e3afac: 'xmp', // XMP specification, part 3, 1.1.4
  '33c7a4d2b81d4723a0baf1a3e097ad38': 'iptc',
};

/** Methods of a box `colr` (ISO/IEC 15444-1, I.5.3.3; 15444-2, M.11.7.2 for the last). */
const METHODS = { enumerated: 1, profile: 2, anyProfile: 3 } as const;

/** Enumerated colour spaces that ImageMagick converts correctly (ISO/IEC 15444-1, table I.10). */
const JP2_COLOURS = { srgb: 16, grey: 17, sycc: 18 };

/** Colour spaces of profiles to convert. CMYK and Lab would be applied to wrong channels. */
const PROFILE_SPACES = ['RGB ', 'GRAY'];

/** Offset of the components in SIZ, of three bytes: depth, horizontal and vertical factor. */
const SIZ_COMPONENTS_AT = 42;
/** Maximum number of components whose sampling factors are read. */
const MAX_COMPONENTS = 16;

/** First two markers of a codestream (ISO/IEC 15444-1, A.5.1). */
interface Siz {
  readonly bytes: Buffer;
  /** Horizontal and vertical sampling factors of the components; empty if there are too many. */
  readonly factors: readonly (readonly [x: number, y: number])[];
}

/** Colour specification: a profile, or an enumerated colour space. */
interface Colour {
  readonly method: number;
  readonly space?: number;
  readonly profile?: PixelFormat['profile'];
}

interface Jp2Layout {
  readonly components?: number;
  readonly codestream?: number;
  readonly siz?: Siz;
  readonly header?: Part;
  /** Whether the header has a channel definition box. */
  readonly channelsDefined: boolean;
  readonly hasPalette: boolean;
  /** Whether the second and third component have fewer samples than the others. */
  readonly isSubsampled: boolean;
  /** First colour specification by a method that OpenJPEG knows. It ignores all others. */
  readonly colour?: Colour;
  readonly image: ImageFacts;
}

/** Reads size, colours and metadata. */
export async function readJp2(bytes: WindowReader): Promise<ImageFacts> {
  const { image, siz, codestream = 0 } = await readJp2Layout(bytes);
  const contradictory = siz !== undefined && (await lacksTiles(bytes, codestream, countTiles(siz.bytes)));
  return { ...image, contradictory };
}

/** Reads the properties of {@link readJp2}, and the structure of the file. */
async function readJp2Layout(bytes: WindowReader): Promise<Jp2Layout> {
  const metadata = new Set<MetadataKind>();
  let layout: Omit<Jp2Layout, 'image'> = { channelsDefined: false, hasPalette: false, isSubsampled: false };

  if (isCodestream(await bytes.read(0, 4))) {
    layout = { ...layout, codestream: 0 };
  } else {
    for await (const box of boxes(bytes)) {
      if (box.name === 'jp2h') layout = { ...layout, ...(await readHeaderBox(bytes, box)), header: box };
      if (box.name === 'uuid') {
        const kind = METADATA[(await bytes.read(box.offset, 16)).toString('hex')];
        if (kind) metadata.add(kind);
      }
      if (box.name === 'jp2c') layout = { codestream: box.offset, ...layout };
    }
  }
  const siz = layout.codestream === undefined ? undefined : await readSiz(bytes, layout.codestream);
  const paletteKind = layout.hasPalette ? 'palette' : undefined;
  const image: ImageFacts = { metadata: [...metadata], paletteKind };
  if (!siz) return { ...layout, image: { ...image, profile: 'none' } };
  const components = siz.bytes.readUInt16BE(40);
  const [first, second = first, third = second, fourth = first] = siz.factors.map(String);
  const isSubsampled = first !== second && second === third && first === fourth;
  const whole = { ...layout, siz, components, isSubsampled };
  const colours = await readColours(bytes, whole);
  const bits = ((siz.bytes[SIZ_COMPONENTS_AT] ?? 7) & 0x7f) + 1;
  const pixels: PixelFormat = {
    alpha: WITH_ALPHA.includes(components),
    bits,
    colourSpace: components < 3 && !layout.hasPalette ? 'grey' : 'rgb',
    profile: layout.colour?.profile,
  };
  return { ...whole, image: { ...image, pixels, ...colours, ...dimensionsOf(siz.bytes, bits) } };
}

/** Reads the profile, and checks whether the tools can convert the colours. */
async function readColours(bytes: WindowReader, layout: Omit<Jp2Layout, 'image'>): Promise<ImageFacts> {
  const { colour, components = 0, hasPalette, isSubsampled, siz } = layout;
  const { profile, space } = colour ?? {};
  const [first] = siz?.factors ?? [];
  if (first?.some((factor) => factor > 1)) return { profile: 'none', kinds: ['jp2-subsampled'] };
  if (!isKnown(layout)) return { profile: 'none', kinds: ['jp2-colours'] };
  if (!profile) return { profile: 'none', ycc: space === JP2_COLOURS.sycc && components > 2 };
  const { at, length } = profile;
  if (isSubsampled || !PROFILE_SPACES.includes(await readColourSpace(bytes, at)))
    return { profile: 'none', kinds: ['jp2-colours'] };
  const model = components > 2 || hasPalette ? 'rgb' : 'grey';
  return { profile: await readProfile(bytes, at, length, model) };
}

const isCodestream = (head: Buffer): boolean => head.equals(CODESTREAM_START);

async function readHeaderBox(bytes: WindowReader, header: Part): Promise<Partial<Jp2Layout>> {
  let layout: Partial<Jp2Layout> = {};
  for await (const { name, offset, length } of boxes(bytes, { from: header.offset, to: header.end })) {
    if (name === 'cdef') layout = { ...layout, channelsDefined: true };
    if (name === 'pclr') layout = { ...layout, hasPalette: true };
    if (name === 'colr' && !layout.colour) {
      const [method = 0, , , ...space] = await bytes.read(offset, 7);
      if (method === METHODS.enumerated && space.length === 4)
        layout = { ...layout, colour: { method, space: Buffer.from(space).readUInt32BE() } };
      if (method === METHODS.profile)
        layout = { ...layout, colour: { method, profile: { at: offset + 3, length: length - 3 } } };
    }
  }
  return layout;
}

/** Reads the SIZ segment. Decoders use its values, even if the boxes contradict them. */
async function readSiz(bytes: WindowReader, codestream: number): Promise<Siz | undefined> {
  const siz = await bytes.read(codestream, SIZ_COMPONENTS_AT + MAX_COMPONENTS * 3);
  if (siz.length <= SIZ_COMPONENTS_AT || !isCodestream(siz.subarray(0, 4))) return undefined;
  const components = siz.readUInt16BE(SIZ_COMPONENTS_AT - 2);
  const end = SIZ_COMPONENTS_AT + components * 3;
  const factors =
    components > MAX_COMPONENTS || siz.length < end
      ? []
      : Array.from({ length: components }, (_, at): [number, number] => {
          const from = SIZ_COMPONENTS_AT + at * 3;
          return [siz[from + 1] as number, siz[from + 2] as number];
        });
  // A copy: the reader overwrites its buffer.
  return { bytes: Buffer.from(siz.subarray(0, end)), factors };
}

function dimensionsOf(siz: Buffer, bits: number): ImageFacts {
  const gridArea = areaOf(siz);
  const { x, y, width, height } = gridArea;
  return { width, height, gridArea: x > 0 || y > 0 ? gridArea : undefined, deep: bits > 8 };
}

/** Offsets in SIZ of horizontal values, which vertical ones follow (ISO/IEC 15444-1, A.5.1). */
const GRID = { size: 8, origin: 16, tile: 24, tileOrigin: 32 } as const;

/** Returns the area of the image on the reference grid. */
function areaOf(siz: Buffer): Area {
  const [x, y] = [siz.readUInt32BE(GRID.origin), siz.readUInt32BE(GRID.origin + 4)];
  const [right, bottom] = [siz.readUInt32BE(GRID.size), siz.readUInt32BE(GRID.size + 4)];
  return { x, y, width: Math.max(0, right - x), height: Math.max(0, bottom - y) };
}

/** Returns the number of tiles (ISO/IEC 15444-1, B.3). */
function countTiles(siz: Buffer): number {
  const [columns, rows] = [0, 4].map((axis) => {
    const [size, tile, origin] = [GRID.size, GRID.tile, GRID.tileOrigin].map((at) =>
      siz.readUInt32BE(at + axis),
    ) as [number, number, number];
    return Math.ceil((size - origin) / tile);
  }) as [number, number];
  return columns * rows;
}

/** Markers: start of a tile-part, and end of the codestream (ISO/IEC 15444-1, A.4.2). */
const SOT = 0xff90;
const EOC = 0xffd9;

/** Maximum number of segments and tile-parts. With more, no tile counts as missing. */
const MAX_TILE_PARTS = 2000;

/**
 * Checks whether a tile has no data, although the codestream at `start` is complete. Decoders leave
 * such a tile blank.
 */
async function lacksTiles(bytes: WindowReader, start: number, tiles: number): Promise<boolean> {
  const found = new Set<number>();
  let at = start + 2; // after SOC
  for (let parts = 0; parts < MAX_TILE_PARTS; parts += 1) {
    const head = await bytes.read(at, 12);
    const marker = head.length < 2 ? undefined : head.readUInt16BE();
    if (marker === EOC) return found.size < tiles;
    if (head.length < 12) return false;
    if (marker !== SOT && found.size > 0) return false;
    if (marker === SOT) found.add(head.readUInt16BE(4));
    const length = marker === SOT ? head.readUInt32BE(6) : 2 + head.readUInt16BE(2);
    if (length === 0) return found.size < tiles; // up to the end of the codestream
    at += length;
  }
  return false;
}

/** Numbers of channels that are grey or sRGB, with or without alpha, unless stated otherwise. */
const WITH_DEFAULT_COLOURS: readonly number[] = [1, 2, 3, 4];
/** Numbers of channels of which the last is alpha, also without a definition, as of Pillow. */
const WITH_ALPHA: readonly number[] = [2, 4];

/** Maximum bytes of a header box to change. Only large profiles, and crafted files, exceed it. */
const MAX_HEADER_BYTES = 4 * 1024 ** 2;

/**
 * Rewrites the headers of a file if ImageMagick would misread them.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 * @throws {ServiceError} DISK_FULL if the disk has no space for the file with another header
 */
export async function repairJp2(target: RepairTarget): Promise<undefined> {
  const { file } = target;
  const layout = await readJp2Layout(new WindowReader(file));
  const { header, codestream, siz } = layout;
  if (codestream === undefined || !siz) return;
  if (header && (header.end > codestream || header.end - header.start > MAX_HEADER_BYTES)) return;
  const divided = divideSampling(siz);
  if (divided) await writeAt(file, codestream, divided);
  const newHeader = await rewriteHeader(file, layout, divided ?? siz.bytes);
  if (newHeader) await replaceRange(target, header ?? { start: 0, end: 0 }, newHeader);
}

/**
 * Divides the reference grid by the factors that all components share. The samples stay the same.
 * ImageMagick would take every second sample of the first quarter. Returns the new SIZ, or
 * undefined if it stays the same, or if the tiles cannot be divided.
 */
function divideSampling({ bytes, factors }: Siz): Buffer | undefined {
  const divisors = [0, 1].map((axis) => factors.map((factor) => factor[axis] as number).reduce(gcd, 0));
  if (divisors.includes(0) || divisors.every((one) => one === 1)) return undefined; // 0 is invalid
  const changed = Buffer.from(bytes);
  for (const [axis, divisor] of divisors.entries()) {
    const at = (field: keyof typeof GRID): number => GRID[field] + axis * 4;
    const get = (field: keyof typeof GRID): number => bytes.readUInt32BE(at(field));
    const [size, origin] = [Math.ceil(get('size') / divisor), Math.ceil(get('origin') / divisor)];
    const isOneTile = get('tileOrigin') + get('tile') >= get('size');
    if (size <= origin || (!isOneTile && (get('tile') % divisor > 0 || get('tileOrigin') % divisor > 0)))
      return undefined;
    changed.writeUInt32BE(size, at('size'));
    changed.writeUInt32BE(origin, at('origin'));
    changed.writeUInt32BE(isOneTile ? size - origin : get('tile') / divisor, at('tile'));
    changed.writeUInt32BE(isOneTile ? origin : get('tileOrigin') / divisor, at('tileOrigin'));
    for (const [component, factor] of factors.entries())
      changed[SIZ_COMPONENTS_AT + component * 3 + 1 + axis] = (factor[axis] as number) / divisor;
  }
  return changed;
}

const gcd = (one: number, other: number): number => (other === 0 ? one : gcd(other, one % other));

/** Returns the new header box, or all before a bare codestream; undefined if nothing changes. */
async function rewriteHeader(file: FileHandle, layout: Jp2Layout, siz: Buffer): Promise<Buffer | undefined> {
  const { header, components = 0, image } = layout;
  const isWrong = layout.siz?.bytes !== siz;
  const colour = missingColour(layout);
  const definesAlpha = WITH_ALPHA.includes(components) && !layout.channelsDefined && isKnown(layout);
  const definition = definesAlpha ? [encodeBox('cdef', channelDefinitions(components))] : [];
  if (header) {
    if (!isWrong && colour === undefined && !definesAlpha) return undefined;
    const { bytes } = await readAt(file, header.offset, header.length);
    const boxes = parseBoxes(bytes, true);
    const imageHeader = findBox(boxes, 'ihdr');
    if (imageHeader && isWrong) sizeOf(siz).copy(imageHeader);
    const kept = replaceColour(boxes, colour).map(({ name, body }) => encodeBox(name, body));
    return encodeBox('jp2h', ...kept, ...definition);
  }
  if (!definesAlpha && colour !== JP2_COLOURS.sycc) return undefined;
  // Bits minus 1; wavelet compression; known colour space; no intellectual property.
  const kind = Buffer.of(image.deep ? 15 : 7, 7, 0, 0);
  const imageHeader = Buffer.concat([sizeOf(siz), bigEndian(components, 2), kind]);
  return Buffer.concat([
    encodeBox('jP  ', Buffer.from('\r\n\x87\n', 'latin1')),
    encodeBox('ftyp', Buffer.from('jp2 \0\0\0\0jp2 ', 'latin1')),
    encodeBox(
      'jp2h',
      encodeBox('ihdr', imageHeader),
      encodeBox('colr', enumerated(colour ?? 0)),
      ...definition,
    ),
    Buffer.from('\0\0\0\0jp2c', 'latin1'), // length 0: up to the end of the file
  ]);
}

/** Height and width, as an image header box starts with them. */
function sizeOf(siz: Buffer): Buffer {
  const { width, height } = areaOf(siz);
  return Buffer.concat([bigEndian(height, 4), bigEndian(width, 4)]);
}

/** Returns whether the colours are of a kind that is converted, or not stated. */
const isKnown = ({ colour }: Pick<Jp2Layout, 'colour'>): boolean =>
  colour?.space === undefined || Object.values(JP2_COLOURS).includes(colour.space);

/**
 * Returns the enumerated colour space that the header must state instead of its own; undefined to
 * keep its own. Subsampled components are sYCC, as in opj_decompress, whatever the header states.
 */
function missingColour(layout: Jp2Layout): number | undefined {
  const { colour, components = 0, hasPalette, isSubsampled } = layout;
  const { srgb, grey, sycc } = JP2_COLOURS;
  if (hasPalette || !isKnown(layout) || colour?.method === METHODS.profile) return undefined;
  const channels = components > 2 ? srgb : grey;
  const right = isSubsampled && components > 2 ? sycc : colour?.space === sycc ? sycc : channels;
  return colour?.space === right || !WITH_DEFAULT_COLOURS.includes(components) ? undefined : right;
}

/**
 * Replaces the colour specification. A profile by the method of JPX becomes one by the method of
 * JP2, because OpenJPEG ignores other methods.
 */
function replaceColour(boxes: readonly Box[], colour: number | undefined): Box[] {
  if (colour === undefined) return [...boxes];
  const isProfile = ({ name, body }: Box) => name === 'colr' && body[0] === METHODS.anyProfile;
  const profile = boxes.find(isProfile);
  const body = profile
    ? Buffer.concat([Buffer.of(METHODS.profile), profile.body.subarray(1)])
    : enumerated(colour);
  const [first, ...others] = boxes.filter(({ name }) => name !== 'colr');
  return [...(first ? [first] : []), { name: 'colr', body }, ...others];
}

const enumerated = (colour: number): Buffer => Buffer.of(METHODS.enumerated, 0, 0, 0, 0, 0, colour);

/** Returns for each channel its number, its type (1 for alpha), and its colour (0: all). */
function channelDefinitions(components: number): Buffer {
  const alpha = components - 1;
  const rows = Array.from({ length: components }, (_, at) => (at === alpha ? [at, 1, 0] : [at, 0, at + 1]));
  const numbers = [components, ...rows.flat()];
  return Buffer.concat(numbers.map((number) => bigEndian(number, 2)));
}
