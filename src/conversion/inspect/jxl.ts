import type { ImageInfo, MetadataKind } from '../plan/types.ts';
import { Bits, type Choices, OutOfBits } from './bits.ts';
import type { WindowReader } from './window-reader.ts';

/** What a JPEG XL says of itself before its first frame (ISO/IEC 18181-1, annex D; 18181-2 for the container). */

/** Boxes of the container that are looked at. */
const MAX_BOXES = 1000;
/** More than the headers of an honest file take; names of extra channels have up to 1 KiB each. */
const HEADER_BYTES = 8 * 1024;
const CODESTREAM = 0x0aff;
const CONTAINER = 'JXL \r\n\x87\n';

const SIDE: Choices = [
  [9, 1],
  [13, 1],
  [18, 1],
  [30, 1],
];
const PREVIEW_SIDE: Choices = [
  [6, 1],
  [8, 65],
  [10, 321],
  [12, 1345],
];
const PREVIEW_EIGHTHS: Choices = [
  [0, 16],
  [0, 32],
  [5, 1],
  [9, 33],
];
/** Width by height, when the width is not stored (table D.2). */
const RATIOS = [0, 1, 12 / 10, 4 / 3, 3 / 2, 16 / 9, 5 / 4, 2];
const ENUM: Choices = [
  [0, 0],
  [0, 1],
  [4, 2],
  [6, 18],
];
/** Of extra channels (table D.7). */
const CHANNEL = { alpha: 0, spot: 2, black: 4, colourFilter: 5 } as const;

/** How large it is, and what makes it special. Animations are counted when they are decoded. */
export async function readJxl(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const { start, metadata } = await findCodestream(bytes);
  const header = start === undefined ? Buffer.alloc(0) : await bytes.read(start, HEADER_BYTES);
  if (header.length < 4 || header.readUInt16LE(0) !== CODESTREAM) return { metadata };
  const bits = new Bits(header.subarray(2));
  try {
    const size = readSize(bits);
    return { ...size, metadata, ...traits(bits) };
  } catch (error) {
    if (error instanceof OutOfBits) return { metadata };
    throw error;
  }
}

const METADATA: Readonly<Record<string, MetadataKind>> = { Exif: 'exif', 'xml ': 'xmp' };

/** Where the codestream starts, and which metadata the container has around it. */
async function findCodestream(bytes: WindowReader): Promise<{ start?: number; metadata: MetadataKind[] }> {
  const head = await bytes.read(0, 12);
  if (head.toString('latin1', 4) !== CONTAINER) return { start: 0, metadata: [] };
  const metadata = new Set<MetadataKind>();
  let start: number | undefined;
  let offset = 0;
  for (let count = 0; count < MAX_BOXES; count += 1) {
    const box = await bytes.read(offset, 20);
    if (box.length < 8) break;
    const large = box.readUInt32BE(0) === 1 && box.length >= 16;
    const length = large ? Number(box.readBigUInt64BE(8)) : box.readUInt32BE(0);
    const body = large ? 16 : 8;
    const name = box.toString('latin1', 4, 8);
    // A part of a codestream has its number first; compressed metadata has its kind first.
    if (name === 'jxlc') start ??= offset + body;
    if (name === 'jxlp') start ??= offset + body + 4;
    const kind = METADATA[name === 'brob' ? box.toString('latin1', body, body + 4) : name];
    if (kind) metadata.add(kind);
    if (length < body) break; // up to the end, or nonsense
    offset += length;
  }
  return { ...(start !== undefined && { start }), metadata: [...metadata] };
}

function readSize(bits: Bits): { width: number; height: number } {
  const small = bits.flag();
  const side = () => (small ? (bits.read(5) + 1) * 8 : bits.pick(SIDE));
  return readSides(bits, side);
}

function readSides(bits: Bits, side: () => number): { width: number; height: number } {
  const height = side();
  const ratio = bits.read(3);
  return { width: ratio === 0 ? side() : Math.floor(height * (RATIOS[ratio] as number)), height };
}

/** The image metadata up to the extra channels; what is behind them says nothing about how to plan. */
function traits(bits: Bits): Omit<ImageInfo, 'type'> {
  if (bits.flag()) return {}; // all as usual: 8 bits, sRGB, one frame
  const animated = bits.flag() && skipExtraFields(bits);
  const depth = readDepth(bits);
  bits.flag(); // whether 16 bits are enough for buffers
  const channels = bits.pick([
    [0, 0],
    [0, 1],
    [4, 2],
    [12, 1],
  ]);
  let [cmyk, uneven] = [false, false];
  for (let at = 0; at < channels; at += 1) {
    const channel = readChannel(bits);
    cmyk ||= channel.type === CHANNEL.black;
    uneven ||= channel.type === CHANNEL.alpha && channel.depth !== depth;
  }
  return {
    ...(depth > 8 && { deep: true }),
    ...(uneven && { unevenDepth: true }),
    ...(animated && { hasUncountedFrames: true }),
    ...(cmyk && { unreadable: 'cmyk-jxl' }),
  };
}

/**
 * Skips orientation, the size it is meant to be shown at, a preview, and how an animation moves: the decoder heeds them.
 *
 * @returns whether it is an animation
 */
function skipExtraFields(bits: Bits): boolean {
  bits.read(3);
  if (bits.flag()) readSize(bits);
  if (bits.flag()) {
    const eighths = bits.flag();
    readSides(bits, () => (eighths ? bits.pick(PREVIEW_EIGHTHS) : bits.pick(PREVIEW_SIDE)));
  }
  const animated = bits.flag();
  if (animated) skipAnimation(bits);
  return animated;
}

function skipAnimation(bits: Bits): void {
  bits.pick([
    [0, 100],
    [0, 1000],
    [10, 1],
    [30, 1],
  ]);
  bits.pick([
    [0, 1],
    [0, 1001],
    [8, 1],
    [10, 1],
  ]);
  bits.pick([
    [0, 0],
    [3, 0],
    [16, 0],
    [32, 0],
  ]);
  bits.flag();
}

/** Bits a sample. */
function readDepth(bits: Bits): number {
  const float = bits.flag();
  const depth = float
    ? bits.pick([
        [0, 32],
        [0, 16],
        [0, 24],
        [6, 1],
      ])
    : bits.pick([
        [0, 8],
        [0, 10],
        [0, 12],
        [6, 1],
      ]);
  if (float) bits.read(4);
  return depth;
}

function readChannel(bits: Bits): { type: number; depth: number } {
  if (bits.flag()) return { type: CHANNEL.alpha, depth: 8 };
  const type = bits.pick(ENUM);
  const depth = readDepth(bits);
  bits.pick([
    [0, 0],
    [0, 3],
    [0, 4],
    [3, 1],
  ]);
  const nameLength = bits.pick([
    [0, 0],
    [4, 0],
    [5, 16],
    [10, 48],
  ]);
  bits.skip(nameLength * 8);
  if (type === CHANNEL.alpha) bits.flag();
  if (type === CHANNEL.spot) bits.skip(4 * 16);
  if (type === CHANNEL.colourFilter)
    bits.pick([
      [0, 1],
      [2, 0],
      [4, 3],
      [8, 19],
    ]);
  return { type, depth };
}
