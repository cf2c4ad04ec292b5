import type { Area, FrameTraits, Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** Chunks that are looked at; a longer animation is refused by the tools' own limits. */
const MOST_CHUNKS = 10_000;
/** Bits of a frame's last header byte. */
const DISPOSE = 1;
const NO_BLEND = 2;

/** Size and animation of an extended WebP, from its chunks (RFC 9649, section 2.7). */
export async function readWebp(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const delaysMs: number[] = [];
  const frames: FrameTraits[] = [];
  let size: { width: number; height: number } | undefined;
  let firstFrame: Area | undefined;
  let plays = 0;
  let offset = 12;
  for (let chunk = 0; chunk < MOST_CHUNKS; chunk += 1) {
    const head = await bytes.at(offset, 24);
    if (head.length < 8) break;
    const name = head.toString('latin1', 0, 4);
    if (name === 'VP8X' && head.length >= 18) size = { width: u24(head, 12) + 1, height: u24(head, 15) + 1 };
    if (name === 'ANIM' && head.length >= 14) plays = head.readUInt16LE(12);
    if (name === 'ANMF' && head.length === 24) {
      delaysMs.push(u24(head, 20));
      const flags = head[23] as number;
      frames.push({ clears: (flags & DISPOSE) !== 0, replaces: (flags & NO_BLEND) !== 0 });
      firstFrame ??= areaOf(head);
    }
    const length = head.readUInt32LE(4);
    offset += 8 + length + (length % 2);
  }
  if (delaysMs.length < 2) return { ...size };
  const covers = firstFrame?.width === size?.width && firstFrame?.height === size?.height;
  return { ...size, animation: { delaysMs, plays, frames, ...(firstFrame && !covers && { firstFrame }) } };
}

const u24 = (buffer: Buffer, at: number): number => buffer.readUIntLE(at, 3);

/** Where a frame lies; its place is stored halved, its size less one. */
function areaOf(head: Buffer): Area {
  return { x: u24(head, 8) * 2, y: u24(head, 11) * 2, width: u24(head, 14) + 1, height: u24(head, 17) + 1 };
}
