/** @module Combines GIFs of one frame to an animation (GIF89a specification, sections 17 to 27). */
import { open } from 'node:fs/promises';
import { littleEndian, OPEN_FLAGS, WindowReader } from '../containers/file.ts';
import {
  CONTROL,
  DESCRIPTOR_BYTES,
  FLAGS_AT,
  gifBlocks,
  HAS_TABLE,
  SCREEN_AT,
  SCREEN_BYTES,
  SCREEN_FLAGS_AT,
  TABLE_SIZE,
  TRANSPARENT,
} from '../containers/parts.ts';
import type { FileRange, Piece } from '../containers/pieces.ts';
import { CombineError, type FrameTiming } from './combiner.ts';

/** Flag of interlaced rows. */
const INTERLACED = 0x40;
/** First bytes of a graphic control extension. */
const CONTROL_START = Buffer.of(0x21, CONTROL, 4);
/**
 * Disposal methods: the frame stays, or what was before it is restored, which is nothing. To clear
 * the area means the same for browsers, but libnsgif fills it with the background colour.
 */
const KEEP = 1 << 2;
const RESTORE = 3 << 2;
/** Eight bits per primary colour, and no global colour table. */
const SCREEN_FLAGS = 0x70;
const TRAILER = Buffer.of(0x3b);

/** A GIF of one frame. */
interface Frame {
  /** Width and height of the canvas, as stored. */
  readonly size: Buffer;
  readonly descriptor: Buffer;
  /** Index of the transparent colour, or undefined. */
  readonly transparent: number | undefined;
  /** Bits of the size of the colour table, less one. */
  readonly bits: number;
  readonly table: FileRange;
  /** Colours to add to the table, which then has twice as many. */
  readonly padding?: Buffer;
  readonly data: FileRange;
}

/** Combines GIFs of one frame, on the canvas of the first. Delays are rounded to 10 ms. */
export async function combineGif(
  paths: readonly string[],
  { delayMs, loopCount }: FrameTiming,
): Promise<Piece[]> {
  const frames: Frame[] = [];
  for (const path of paths) frames.push(await readFrame(path));
  const size = frames[0]?.size ?? Buffer.alloc(4);
  if (frames.some((frame) => !frame.size.equals(size))) throw new CombineError('GIFs of different sizes');
  const screen = Buffer.concat([Buffer.from('GIF89a'), size, Buffer.of(SCREEN_FLAGS, 0, 0)]);
  const delay = littleEndian(Math.round(delayMs / 10), 2);
  const isTransparent = frames.some(({ transparent }) => transparent !== undefined);
  return [
    Buffer.concat([screen, loopExtension(loopCount)]),
    ...frames.flatMap((frame) =>
      toPieces(isTransparent ? withTransparency(frame) : frame, delay, isTransparent),
    ),
    TRAILER,
  ];
}

/** Returns the loop extension, whose count excludes the first playback; nothing to play once. */
function loopExtension(loopCount: number): Buffer {
  if (loopCount === 1) return Buffer.alloc(0);
  const repeats = littleEndian(Math.max(0, loopCount - 1), 2);
  return Buffer.concat([Buffer.from('\x21\xff\x0bNETSCAPE2.0\x03\x01', 'latin1'), repeats, Buffer.of(0)]);
}

/**
 * Adds a transparent colour to an opaque frame. Without it, Pillow has no transparency in later
 * frames, either. In a table of 256, the last colour is free: a part has at most 255.
 */
function withTransparency(frame: Frame): Frame {
  const { bits, transparent } = frame;
  if (transparent !== undefined) return frame;
  const colours = 2 ** (bits + 1);
  if (bits === TABLE_SIZE) return { ...frame, transparent: colours - 1 };
  return { ...frame, bits: bits + 1, transparent: colours, padding: Buffer.alloc(3 * colours) };
}

function toPieces(
  { descriptor, transparent, bits, table, padding, data }: Frame,
  delay: Buffer,
  restores: boolean,
): Piece[] {
  const flags = (restores ? RESTORE : KEEP) | (transparent === undefined ? 0 : TRANSPARENT);
  const control = Buffer.concat([CONTROL_START, Buffer.of(flags), delay, Buffer.of(transparent ?? 0, 0)]);
  const own = Buffer.from(descriptor);
  own[FLAGS_AT] = HAS_TABLE | bits | ((descriptor[FLAGS_AT] ?? 0) & INTERLACED);
  return [Buffer.concat([control, own]), table, padding ?? Buffer.alloc(0), data];
}

/** Reads the frame of a GIF, and finds its colour table: its own, or else the global one. */
async function readFrame(path: string): Promise<Frame> {
  await using file = await open(path, OPEN_FLAGS);
  const reader = new WindowReader(file);
  const screen = Buffer.from(await reader.read(0, SCREEN_BYTES));
  const size = screen.subarray(SCREEN_AT, SCREEN_AT + 4);
  let transparent: number | undefined;
  for await (const { name, offset, head, end } of gifBlocks(reader)) {
    if (name === 'extension' && head.subarray(0, 3).equals(CONTROL_START))
      transparent = (head[3] ?? 0) & TRANSPARENT ? head[6] : undefined;
    if (name !== 'image' || end === undefined) continue;
    const flags = head[FLAGS_AT] ?? 0;
    const start = offset + DESCRIPTOR_BYTES;
    const hasOwn = (flags & HAS_TABLE) !== 0;
    const bits = (hasOwn ? flags : (screen[SCREEN_FLAGS_AT] ?? 0)) & TABLE_SIZE;
    const bytes = 3 * 2 ** (bits + 1);
    const from = hasOwn ? start : SCREEN_BYTES;
    const descriptor = head.subarray(0, DESCRIPTOR_BYTES);
    const data = { path, from: hasOwn ? start + bytes : start, to: end };
    return { size, descriptor, transparent, bits, table: { path, from, to: from + bytes }, data };
  }
  throw new CombineError(`${path} has no frame`);
}
