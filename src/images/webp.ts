/** @module Reads the chunks of a WebP (RFC 9649). */

import { readOrientation, skipExifMarker } from './containers/ifd.ts';
import type { WindowReader } from './containers/window-reader.ts';
import { readProfile } from './icc.ts';
import type { Area, FrameDisposal, ImageInfo } from './image-info.ts';

/** Maximum number of chunks to read: twice the largest MAX_FRAMES. */
const MAX_CHUNKS = 20_000;
/** Delay that viewers use for a frame with a delay of 0, in ms. */
const DEFAULT_DELAY_MS = 100;
/** Alpha bit in the flags of the VP8X chunk. */
const ALPHA = 0x10;
/** Flags in the last header byte of a frame: dispose to background, do not blend. */
const DISPOSE = 1;
const NO_BLEND = 2;

type PartialInfo = Omit<ImageInfo, 'type'>;

/** Reads size, animation and metadata of a WebP from its chunks (RFC 9649, section 2.7). */
export async function readWebp(bytes: WindowReader): Promise<PartialInfo> {
  const delaysMs: number[] = [];
  const frames: FrameDisposal[] = [];
  let info: PartialInfo = { profile: 'none', metadata: [] };
  let firstFrame: Area | undefined;
  let plays = 0;
  let transparent = false;
  const seen = new Set<string>();
  let offset = 12;
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const head = await bytes.read(offset, 24);
    if (head.length < 8) break;
    const name = head.toString('latin1', 0, 4);
    const length = head.readUInt32LE(4);
    if (name === 'VP8X') transparent = ((head[8] ?? 0) & ALPHA) !== 0;
    if (name === 'ANIM' && head.length >= 14) plays = head.readUInt16LE(12);
    if (name === 'ANMF' && head.length === 24) {
      delaysMs.push(u24(head, 20) || DEFAULT_DELAY_MS);
      const flags = head[23] as number;
      frames.push({ disposeToBackground: (flags & DISPOSE) !== 0, noBlend: (flags & NO_BLEND) !== 0 });
      firstFrame ??= areaOf(head);
    }
    info = { ...info, ...sizeOf(name, head) };
    // The first chunk of each kind counts (RFC 9649, sections 2.7.1.4 and 2.7.1.5).
    const parsed = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, offset + 8, length);
    if (Object.hasOwn(CHUNKS, name)) seen.add(name);
    const metadata = [...new Set([...(info.metadata ?? []), ...(parsed?.metadata ?? [])])];
    info = { ...info, ...parsed, metadata };
    offset += 8 + length + (length % 2);
  }
  if (!firstFrame) return info;
  const covers = firstFrame.width === info.width && firstFrame.height === info.height;
  // The tools ignore the profile and EXIF of an animated WebP, and viewers do not rotate animations.
  const { orientation, ...rest } = info;
  return {
    ...rest,
    ...(!covers && { firstFrame }),
    ...(info.profile !== 'none' && { externalProfile: true }),
    ...(delaysMs.length > 1 && { animation: { delaysMs, loopCount: plays, transparent, frames } }),
  };
}

/** Reads the canvas size, or the image size of a simple file (sections 2.5 to 2.7; RFC 6386, 9.1). */
function sizeOf(name: string, head: Buffer): PartialInfo {
  if (name === 'VP8X' && head.length >= 18) return { width: u24(head, 12) + 1, height: u24(head, 15) + 1 };
  if (name === 'VP8 ' && head.length >= 18) {
    return { width: head.readUInt16LE(14) & 0x3fff, height: head.readUInt16LE(16) & 0x3fff };
  }
  if (name !== 'VP8L' || head.length < 13) return {};
  const bits = head.readUInt32LE(9);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, start: number, length: number) => Promise<PartialInfo>>
> = {
  EXIF: async (bytes, start) => ({
    ...(await readOrientation(bytes, await skipExifMarker(bytes, start))),
    metadata: ['exif'],
  }),
  'XMP ': async () => ({ metadata: ['xmp'] }),
  ICCP: async (bytes, start, length) => ({ profile: await readProfile(bytes, start, length, 'rgb') }),
};

const u24 = (buffer: Buffer, at: number): number => buffer.readUIntLE(at, 3);

/** Reads the area of a frame: the offset is stored halved, the size minus one. */
function areaOf(head: Buffer): Area {
  return { x: u24(head, 8) * 2, y: u24(head, 11) * 2, width: u24(head, 14) + 1, height: u24(head, 17) + 1 };
}
