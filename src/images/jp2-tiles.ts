/** @module Checks whether a JPEG 2000 has all of its tiles (ISO/IEC 15444-1, A.4.2). */
import type { WindowReader } from './containers/file.ts';

/** Markers: start of a tile-part, and end of the codestream. */
const SOT = 0xff90;
const EOC = 0xffd9;

/** Maximum number of segments before the tiles and of tile-parts, together. In a file with more, no tile counts as missing. */
const MAX_PARTS = 2000;

/**
 * Checks whether a tile has no data, although the codestream is complete. Decoders leave such a tile blank.
 *
 * @param start offset of the codestream
 * @param tiles number of tiles that its header states
 */
export async function lacksTiles(bytes: WindowReader, start: number, tiles: number): Promise<boolean> {
  const found = new Set<number>();
  let at = start + 2; // after SOC
  for (let parts = 0; parts < MAX_PARTS; parts += 1) {
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
