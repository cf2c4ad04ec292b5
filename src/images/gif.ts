/**
 * @module Reads a GIF, and repairs one that ImageMagick would reject or show differently from
 * browsers (GIF89a specification).
 */
import {
  HeaderTooComplexError,
  littleEndian,
  type RepairTarget,
  readAt,
  WindowReader,
  writeAt,
} from './containers/file.ts';
import {
  CONTROL,
  type GifBlock,
  gifBlocks,
  SCREEN_AT,
  SCREEN_BYTES,
  TRANSPARENT,
} from './containers/parts.ts';
import { type ImageFacts, type MetadataKind, RGB_PIXELS } from './image-info.ts';

/** Maximum loop count of a WebP. */
const MAX_LOOP_COUNT = 65_535;
/** Delay of a frame with a delay of 0, in ms. */
const DEFAULT_DELAY_MS = 100;

/** Second byte of an application extension. */
const APPLICATION = 0xff;
/** Offset of the name in an application extension (section 26). */
const NAME_AT = 3;
/** Offset of the repeat count in a loop extension, and its length. */
const REPEATS_AT = 16;
const LOOP_BYTES = 19;
/** Usual name of the loop extension, and another one, which browsers also accept. */
const LOOP = 'NETSCAPE2.0';
const OTHER_LOOP = 'ANIMEXTS1.0';
/** Name of an extension with XMP (XMP specification, part 3, section 1.1.2). */
const XMP = 'XMP DataXMP';

/** Checks for an application extension of this name. */
const isNamed = ({ name, head }: GifBlock, wanted: string): boolean =>
  name === 'extension' && head[1] === APPLICATION && head.toString('latin1', NAME_AT, 14) === wanted;

/** Checks for an extension with XMP. */
export const isXmp = (block: GifBlock): boolean => isNamed(block, XMP);

const isLoop = (block: GifBlock): boolean =>
  (isNamed(block, LOOP) || isNamed(block, OTHER_LOOP)) && block.head.length >= LOOP_BYTES;

/** Checks for a graphic control extension, which applies to the frame after it (section 23). */
const isControl = ({ name, head }: GifBlock): boolean => name === 'extension' && head[1] === CONTROL;

/** Reads the size, animation and metadata of a GIF from its blocks (sections 18 to 26). */
export async function readGif(bytes: WindowReader): Promise<ImageFacts> {
  const screen = Buffer.from(await bytes.read(0, SCREEN_BYTES));
  if (screen.length < SCREEN_BYTES) return { pixels: RGB_PIXELS };
  let [width, height] = [screen.readUInt16LE(SCREEN_AT), screen.readUInt16LE(SCREEN_AT + 2)];
  const delaysMs: number[] = [];
  const metadata: MetadataKind[] = [];
  let delay = 0;
  let loopCount = 1;
  let [truncated, contradictory] = [false, false];
  let flags = 0;
  let first: { readonly head: Buffer; readonly flags: number } | undefined;
  let [clears, alpha] = [false, false];
  /** Bytes of the first frame and of all others, and pixels of these. */
  let [firstBytes, laterBytes, laterPixels] = [0, 0, 0];
  for await (const block of gifBlocks(bytes)) {
    const { name, head, offset, end } = block;
    if (name === 'image') {
      if (first) {
        laterBytes += (end ?? offset) - offset;
        laterPixels += head.readUInt16LE(5) * head.readUInt16LE(7);
      } else firstBytes = (end ?? offset) - offset;
      delaysMs.push(delay || DEFAULT_DELAY_MS);
      // A frame may be larger than the logical screen, and all its pixels are decoded.
      width = Math.max(width, head.readUInt16LE(5));
      height = Math.max(height, head.readUInt16LE(7));
      first ??= { head, flags };
      // Before the first frame, the canvas is transparent.
      const disposal = (flags >> 2) & 7;
      clears ||= disposal === CLEAR || (delaysMs.length === 1 && disposal > KEEP);
      [delay, flags] = [0, 0];
    }
    alpha ||= isControl(block) && ((head[3] ?? 0) & TRANSPARENT) !== 0;
    // Of several controls before a frame, the last one counts, but ImageMagick keeps the
    // transparent colour of an earlier one.
    if (isControl(block) && head.length >= 8)
      [delay, flags] = [head.readUInt16LE(4) * 10, (head[3] ?? 0) | (flags & TRANSPARENT)];
    if (isNamed(block, LOOP) && isLoop(block)) {
      const repeats = head.readUInt16LE(REPEATS_AT); // without the first playback; 0 means forever
      loopCount = repeats && Math.min(repeats + 1, MAX_LOOP_COUNT);
    }
    if (isXmp(block) && metadata.length === 0) metadata.push('xmp');
    if (end === undefined && name === 'cut' && head.length === 0) truncated = true;
    else contradictory ||= end === undefined;
  }
  const covers =
    first !== undefined && (first.flags & TRANSPARENT) === 0 && isWhole(first.head, width, height);
  // Frames over an opaque one uncover transparency only if they clear their area.
  const opaque = covers && !clears;
  const most = (delaysMs.length - 1) / 2;
  const changesLittle = laterBytes <= firstBytes * most || laterPixels <= width * height * most;
  const isStill = delaysMs.length === 1 && !truncated && !contradictory;
  return {
    width,
    height,
    paletteKind: 'palette',
    profile: 'none',
    metadata,
    pixels: { ...RGB_PIXELS, alpha },
    truncated,
    contradictory,
    opaque: isStill && covers,
    animation: delaysMs.length > 1 ? { delaysMs, loopCount, opaque, changesLittle } : undefined,
  };
}

/** Disposal methods that keep and clear the area of a frame (section 23). */
const KEEP = 1;
const CLEAR = 2;

/** Returns whether a frame covers the whole canvas (section 20). */
function isWhole(descriptor: Buffer, width: number, height: number): boolean {
  const [left, top, columns, rows] = [1, 3, 5, 7].map((at) => descriptor.readUInt16LE(at));
  return left === 0 && top === 0 && columns === width && rows === height;
}

/**
 * Enlarges the canvas to the first frame, and replaces a loop extension and a disposal method that
 * ImageMagick does not know. Completes frames without a graphic control extension.
 *
 * @throws {ServiceError} DISK_FULL if the repaired file is larger and the disk has no space for it
 */
export async function repairGif(target: RepairTarget): Promise<undefined> {
  const { file } = target;
  try {
    const flaws = await findFlaws(new WindowReader(file));
    for (const [at, replacement] of flaws.replacements) await writeAt(file, at, replacement);
    await insertControls(flaws.uncontrolled, target);
  } catch (error) {
    if (!(error instanceof HeaderTooComplexError)) throw error; // the inspection reports it
  }
}

const MAX_GIF_SIDE = 65_535;
/** An undefined disposal method, which browsers treat as restore to previous (section 23). */
const UNDEFINED_DISPOSAL = 4;
const RESTORE_TO_PREVIOUS = 3;

async function findFlaws(bytes: WindowReader) {
  const screen = Buffer.from(await bytes.read(0, SCREEN_BYTES));
  /** Bytes to replace, by their offset. */
  const replacements: [at: number, bytes: Buffer][] = [];
  /** Offsets of image descriptors without a graphic control, after a frame that has one. */
  const uncontrolled: number[] = [];
  let otherLoop: GifBlock | undefined;
  let [loop, laterLoop]: (GifBlock | undefined)[] = [];
  let hasFrame = false;
  let control: 'none' | 'earlier' | 'own' = 'none';
  for await (const block of gifBlocks(bytes)) {
    const { name, offset, head } = block;
    const flags = head[3] ?? 0;
    if (isControl(block) && ((flags >> 2) & 7) === UNDEFINED_DISPOSAL)
      replacements.push([offset + 3, Buffer.of(flags ^ ((UNDEFINED_DISPOSAL ^ RESTORE_TO_PREVIOUS) << 2))]);
    if (isControl(block)) control = 'own';
    if (isNamed(block, OTHER_LOOP) && !hasFrame) otherLoop = block;
    if (isLoop(block) && hasFrame) laterLoop = block;
    if (isLoop(block) && !hasFrame) loop = block;
    const isFirst = name === 'image' && !hasFrame;
    if (isFirst) replacements.push([SCREEN_AT, canvasFor(screen, head)]);
    if (isFirst && otherLoop) replacements.push([otherLoop.offset + NAME_AT, Buffer.from(LOOP)]);
    if (name === 'image' && control === 'earlier') uncontrolled.push(offset);
    if (name === 'image' && control === 'own') control = 'earlier';
    hasFrame ||= name === 'image';
  }
  // The last repeat count counts, but ImageMagick uses the one before the first frame.
  if (loop && laterLoop)
    replacements.push([loop.offset + REPEATS_AT, laterLoop.head.subarray(REPEATS_AT, REPEATS_AT + 2)]);
  return { replacements, uncontrolled };
}

/** Returns the canvas size that includes a frame. */
function canvasFor(screen: Buffer, descriptor: Buffer): Buffer {
  const sides = [0, 2].map((at) => {
    const frameEnd = descriptor.readUInt16LE(1 + at) + descriptor.readUInt16LE(5 + at);
    return Math.min(MAX_GIF_SIDE, Math.max(screen.readUInt16LE(SCREEN_AT + at), frameEnd));
  });
  return Buffer.concat(sides.map((side) => littleEndian(side, 2)));
}

/** A graphic control with the defaults: no transparency, delay or disposal (section 23). */
const DEFAULT_CONTROL = Buffer.from([0x21, CONTROL, 4, 0, 0, 0, 0, 0]);

/** Maximum number of bytes to move for the extensions: they are in memory. */
const MAX_MOVED_BYTES = 16 * 1024 ** 2;

/**
 * Inserts a graphic control extension before image descriptors. An extension applies only to the
 * frame after it, but ImageMagick would apply it to later frames, too. Does not change a file that
 * is or becomes too large for that.
 */
async function insertControls(
  descriptorsAt: readonly number[],
  { file, maxBytes, store }: RepairTarget,
): Promise<void> {
  const { size } = await file.stat();
  const [first] = descriptorsAt;
  const added = descriptorsAt.length * DEFAULT_CONTROL.length;
  if (first === undefined || size - first > MAX_MOVED_BYTES || size + added > maxBytes) return;
  const { bytes: end } = await readAt(file, first, size - first);
  const parts = descriptorsAt.flatMap((at, index) => [
    DEFAULT_CONTROL,
    end.subarray(at - first, (descriptorsAt[index + 1] ?? size) - first),
  ]);
  await store(added);
  await writeAt(file, first, Buffer.concat(parts));
}
