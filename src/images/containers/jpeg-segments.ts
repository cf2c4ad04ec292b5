/** @module Segments of a JPEG before its pixels (ITU-T T.81, section B.1). */

import type { ByteReader } from './parts.ts';

/** Maximum number of segments to read; real files have a few dozen before the pixels. */
const MAX_SEGMENTS = 10_000;
/** Bytes of the window in which fill bytes are skipped at once. */
const FILL_BYTES = 4096;

/** Marker of the segment that the pixels follow. */
export const START_OF_SCAN = 0xda;

/** A segment, or a marker without content. */
export interface Segment {
  readonly marker: number;
  /** Offset of the marker. */
  readonly start: number;
  /** Offset of the content. */
  readonly offset: number;
  readonly length: number;
  readonly end: number;
}

/** Yields the segments up to the pixels, which is the last one, or up to the first invalid one. */
export async function* jpegSegments(bytes: ByteReader): AsyncGenerator<Segment> {
  let start = 2;
  for (let count = 0; count < MAX_SEGMENTS; count += 1) {
    const head = await bytes.read(start, 4);
    const [prefix, marker = 0xff] = head;
    if (head.length < 4 || prefix !== 0xff) return;
    const isFill = marker === 0xff;
    const length = isFill || hasNoLength(marker) ? 0 : head.readUInt16BE(2) - 2;
    const offset = start + (isFill || hasNoLength(marker) ? 2 : 4);
    const end = isFill ? start + (await countFill(bytes, start)) : offset + length;
    if (!isFill) yield { marker, start, offset, length, end };
    if (marker === START_OF_SCAN) return;
    start = end;
  }
}

/** Counts the fill bytes before a marker (section B.1.1.2): all bytes 0xFF of the window except the last. */
async function countFill(bytes: ByteReader, start: number): Promise<number> {
  const window = await bytes.read(start, FILL_BYTES);
  const end = window.findIndex((byte) => byte !== 0xff);
  return (end < 0 ? window.length : end) - 1;
}

/** Checks for TEM and the restart markers, which have no length field. */
function hasNoLength(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}
