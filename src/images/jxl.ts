/**
 * @module Reads the headers of a JPEG XL up to its first frame (ISO/IEC 18181-1, annex D; 18181-2
 * for the container), and appends metadata to one in a container.
 */
import type { FileHandle } from 'node:fs/promises';
import { type BitReader, type Choices, readBits } from './containers/bits.ts';
import { type ByteReader, bigEndian, type Edit, fileReader, type WindowReader } from './containers/file.ts';
import { boxes, encodeBox, type Part } from './containers/parts.ts';
import type { ImageFacts, MetadataKind, Orientation, Profile, Size } from './image-info.ts';

/** Bytes to read for the headers. Real ones have fewer, although a name can have 1 KiB. */
const HEADER_BYTES = 8 * 1024;
/** Marker at the start of the codestream. */
const CODESTREAM = 0x0aff;
/** Type and body of the first box of a container. */
const CONTAINER = 'JXL \r\n\x87\n';

/** Encodings of a width or height in pixels. */
const SIDE: Choices = [9, 1, 13, 1, 18, 1, 30, 1];
/** The same for a preview, and for one in units of 8 pixels. */
const PREVIEW_SIDE: Choices = [6, 1, 8, 65, 10, 321, 12, 1345];
const PREVIEW_EIGHTHS: Choices = [0, 16, 0, 32, 5, 1, 9, 33];
/** Aspect ratios for files that do not store the width (table D.2). */
const RATIOS = [0, 1, 12 / 10, 4 / 3, 3 / 2, 16 / 9, 5 / 4, 2];
/** Encodings of an enumerated value. */
const ENUM: Choices = [0, 0, 0, 1, 4, 2, 6, 18];
/** Types of extra channels (table D.7). */
const CHANNEL = { alpha: 0, spot: 2, black: 4, colourFilter: 5 } as const;

/** Reads size, depth, metadata and unsupported colours. Frames are counted after decoding. */
export async function readJxl(bytes: WindowReader): Promise<ImageFacts> {
  const { start, metadata } = await findCodestream(bytes);
  const head = start === undefined ? Buffer.alloc(0) : await bytes.read(start, HEADER_BYTES);
  if (head.length < 4 || head.readUInt16LE(0) !== CODESTREAM) return { metadata };
  const read = (bits: BitReader) => ({ size: readSize(bits), header: readProperties(bits) });
  const { size, header } = readBits(head.subarray(2), 'low', read) ?? {};
  if (!header) return { metadata }; // the file ends within the header
  const { hasAlpha: alpha, depths, isCmyk, isGrey, orientation, profile } = header;
  const [bits = 8] = depths;
  return {
    ...size,
    metadata,
    profile,
    pixels: { alpha, bits, colourSpace: isCmyk ? 'cmyk' : isGrey ? 'grey' : 'rgb', orientation },
    deep: bits > 8,
    premultiplied: header.isPremultiplied,
    hasUncountedFrames: header.isAnimated,
    ...decodedDepth(header),
    ...(isCmyk && { kinds: ['jpeg-xl-cmyk'] as const }),
  };
}

/**
 * Returns the bits per channel that djxl must write: 8 or 16, if not all channels have as many.
 * djxl 0.7 writes wrong pixels of other depths unless it is told to convert them, and cannot
 * convert alpha.
 */
function decodedDepth({ depths, hasAlpha }: JxlHeader): ImageFacts {
  const decodedDepth = Math.max(...depths) > 8 ? 16 : 8;
  if (depths.every((depth) => depth === decodedDepth)) return {};
  return { decodedDepth, ...(hasAlpha && { kinds: ['jpeg-xl-alpha-depth'] as const }) };
}

/** Properties of an image, up to its colour space. */
interface JxlHeader {
  /** Bits per channel: of the colours, and of each alpha channel. */
  readonly depths: readonly number[];
  readonly orientation: Orientation;
  readonly isAnimated: boolean;
  readonly hasAlpha: boolean;
  /** Whether the colours are multiplied by the first alpha channel. */
  readonly isPremultiplied: boolean;
  readonly isCmyk: boolean;
  readonly isGrey: boolean;
  /** Whether djxl writes a profile other than sRGB. Undefined if only decoding shows that. */
  readonly profile?: Profile;
}

const DEFAULT_HEADER: JxlHeader = {
  depths: [8],
  orientation: 1,
  isAnimated: false,
  hasAlpha: false,
  isPremultiplied: false,
  isCmyk: false,
  isGrey: false,
  profile: 'none',
};
/** Numbers of greys, and of sRGB's white point, primaries and transfer (tables D.4 to D.7). */
const COLOURS = { grey: 1, d65: 1, srgb: 1, srgbCurve: 13 } as const;

/** Metadata by the names of boxes. */
export const JXL_METADATA: Readonly<Record<string, MetadataKind>> = { Exif: 'exif', 'xml ': 'xmp' };

/** Finds the offset of the codestream, and the metadata in the container. */
async function findCodestream(
  bytes: WindowReader,
): Promise<{ start: number | undefined; metadata: MetadataKind[] }> {
  const head = await bytes.read(0, 12);
  if (head.toString('latin1', 4) !== CONTAINER) return { start: 0, metadata: [] };
  const metadata = new Set<MetadataKind>();
  let start: number | undefined;
  for await (const box of boxes(bytes)) {
    const { name, offset } = box;
    if (name === 'jxlc') start ??= offset;
    if (name === 'jxlp') start ??= offset + 4; // a partial codestream starts with its index
    const kind = JXL_METADATA[await contentName(bytes, box)];
    if (kind) metadata.add(kind);
  }
  return { start, metadata: [...metadata] };
}

/** Returns the name of a box, also of a compressed one (ISO/IEC 18181-2, section 9.3). */
export const contentName = async (bytes: ByteReader, { name, offset }: Part): Promise<string> =>
  name === 'brob' ? (await bytes.read(offset, 4)).toString('latin1') : name;

function readSize(bits: BitReader): Size {
  const small = bits.flag();
  return readSides(bits, () => (small ? (bits.read(5) + 1) * 8 : bits.pick(...SIDE)));
}

function readSides(bits: BitReader, side: () => number): Size {
  const height = side();
  const ratio = bits.read(3);
  return { width: ratio === 0 ? side() : Math.floor(height * (RATIOS[ratio] as number)), height };
}

/** Reads the image metadata up to the colour space. Later fields have no effect on a plan. */
function readProperties(bits: BitReader): JxlHeader {
  if (bits.flag()) return DEFAULT_HEADER;
  const { orientation, isAnimated } = bits.flag() ? readExtraFields(bits) : DEFAULT_HEADER;
  const depth = readDepth(bits);
  bits.flag(); // whether decoders can use buffers of 16 bits
  const count = bits.pick(0, 0, 0, 1, 4, 2, 12, 1);
  const channels = Array.from({ length: count }, () => readChannel(bits));
  const alpha = channels.filter(({ type }) => type === CHANNEL.alpha);
  bits.flag(); // whether the colours are XYB
  return {
    depths: [depth, ...alpha.map((channel) => channel.depth)],
    orientation,
    isAnimated,
    hasAlpha: alpha.length > 0,
    isPremultiplied: alpha[0]?.isAssociated === true,
    isCmyk: channels.some(({ type }) => type === CHANNEL.black),
    ...readColours(bits),
  };
}

/**
 * Reads whether the colours are sRGB. libjxl describes many profiles by numbers, and compresses
 * others in a way that only decoders know.
 */
function readColours(bits: BitReader): Pick<JxlHeader, 'isGrey' | 'profile'> {
  if (bits.flag()) return { isGrey: false, profile: 'none' };
  const hasProfile = bits.flag();
  const isGrey = bits.pick(...ENUM) === COLOURS.grey;
  if (hasProfile) return { isGrey };
  const isSrgb =
    bits.pick(...ENUM) === COLOURS.d65 &&
    (isGrey || bits.pick(...ENUM) === COLOURS.srgb) &&
    !bits.flag() && // whether the curve is a gamma
    bits.pick(...ENUM) === COLOURS.srgbCurve;
  return { isGrey, profile: isSrgb ? 'none' : isGrey ? 'grey' : 'other' };
}

/** Reads the orientation, and skips the intrinsic size, the preview and the timing. */
function readExtraFields(bits: BitReader): Pick<JxlHeader, 'orientation' | 'isAnimated'> {
  const orientation = (1 + bits.read(3)) as Orientation;
  if (bits.flag()) readSize(bits);
  if (bits.flag()) {
    const eighths = bits.flag();
    readSides(bits, () => bits.pick(...(eighths ? PREVIEW_EIGHTHS : PREVIEW_SIDE)));
  }
  const isAnimated = bits.flag();
  if (isAnimated) skipAnimation(bits);
  return { orientation, isAnimated };
}

function skipAnimation(bits: BitReader): void {
  bits.pick(0, 100, 0, 1000, 10, 1, 30, 1);
  bits.pick(0, 1, 0, 1001, 8, 1, 10, 1);
  bits.pick(0, 0, 3, 0, 16, 0, 32, 0);
  bits.flag();
}

function readDepth(bits: BitReader): number {
  const float = bits.flag();
  const depth = float ? bits.pick(0, 32, 0, 16, 0, 24, 6, 1) : bits.pick(0, 8, 0, 10, 0, 12, 6, 1);
  if (float) bits.read(4);
  return depth;
}

/** Reads an extra channel. The colours are multiplied by an associated alpha. */
function readChannel(bits: BitReader): { type: number; depth: number; isAssociated: boolean } {
  if (bits.flag()) return { type: CHANNEL.alpha, depth: 8, isAssociated: false };
  const type = bits.pick(...ENUM);
  const depth = readDepth(bits);
  bits.pick(0, 0, 0, 3, 0, 4, 3, 1);
  const nameLength = bits.pick(0, 0, 4, 0, 5, 16, 10, 48);
  bits.skip(nameLength * 8);
  const isAssociated = type === CHANNEL.alpha && bits.flag();
  if (type === CHANNEL.spot) bits.skip(4 * 16);
  if (type === CHANNEL.colourFilter) bits.pick(0, 1, 2, 0, 4, 3, 8, 19);
  return { type, depth, isAssociated };
}

/** EXIF, which starts with its TIFF header, and XMP. */
export interface JxlMetadata {
  readonly exif?: Buffer | undefined;
  readonly xmp?: Buffer | undefined;
}

/** Returns the changes that append metadata as boxes, unless the file has some of that kind. */
export async function jxlMetadataEdits(
  file: FileHandle,
  size: number,
  { exif, xmp }: JxlMetadata,
): Promise<Edit[]> {
  const bytes = fileReader(file);
  const names: string[] = [];
  const edits: Edit[] = [];
  for await (const box of boxes(bytes, { from: 0, to: size })) {
    const { start, end } = box;
    names.push(await contentName(bytes, box));
    // A box that extends to the end of the file could not be followed by others.
    if (end === Number.POSITIVE_INFINITY)
      edits.push({ at: start, removed: 4, bytes: bigEndian(size - start, 4) });
  }
  const added = [
    // The box starts with the offset of the TIFF header (section 9.1).
    ...(exif && !names.includes('Exif') ? [encodeBox('Exif', Buffer.alloc(4), exif)] : []),
    ...(xmp && !names.includes('xml ') ? [encodeBox('xml ', xmp)] : []),
  ];
  return [...edits, { at: size, removed: 0, bytes: Buffer.concat(added) }];
}
