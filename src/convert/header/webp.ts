import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** Chunks that are looked at; a longer animation is refused by the tools' own limits. */
const MOST_CHUNKS = 10_000;

/** The animation of a WebP, from its chunks (RFC 9649, section 2.7). */
export async function readWebp(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const delaysMs: number[] = [];
  let plays = 0;
  let offset = 12;
  for (let chunk = 0; chunk < MOST_CHUNKS; chunk += 1) {
    const head = await bytes.at(offset, 24);
    if (head.length < 8) break;
    const name = head.toString('latin1', 0, 4);
    if (name === 'ANIM' && head.length >= 14) plays = head.readUInt16LE(12);
    if (name === 'ANMF' && head.length >= 23) delaysMs.push(head.readUIntLE(20, 3));
    const size = head.readUInt32LE(4);
    offset += 8 + size + (size % 2);
  }
  return delaysMs.length > 1 ? { animation: { delaysMs, plays } } : {};
}
