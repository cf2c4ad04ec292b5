import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

const PHOTOMETRIC = 262;
const SEPARATED = 5;
const MOST_TAGS = 1000;

/** Whether the first page of a classic TIFF holds inks (TIFF 6.0, section 16). */
export async function readTiff(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const head = Buffer.from(await bytes.at(0, 8));
  if (head.length < 8) return {};
  const big = head[0] === 0x4d;
  const u16 = (buffer: Buffer, at: number) => (big ? buffer.readUInt16BE(at) : buffer.readUInt16LE(at));
  const directory = big ? head.readUInt32BE(4) : head.readUInt32LE(4);

  const count = await bytes.at(directory, 2);
  if (count.length < 2) return {};
  const length = Math.min(u16(count, 0), MOST_TAGS) * 12;
  const tags = await bytes.at(directory + 2, length);
  for (let at = 0; at + 12 <= tags.length; at += 12) {
    if (u16(tags, at) === PHOTOMETRIC) return { cmyk: u16(tags, at + 8) === SEPARATED };
  }
  return {};
}
