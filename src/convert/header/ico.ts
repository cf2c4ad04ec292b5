import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

const ENTRY = 16;
const MOST_ENTRIES = 1000;

/** Which image of an icon is the best: the largest area, then the most bits a pixel. */
export async function readIco(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const head = await bytes.at(0, 6);
  if (head.length < 6) return {};
  const directory = Buffer.from(await bytes.at(6, Math.min(head.readUInt16LE(4), MOST_ENTRIES) * ENTRY));

  let best = { index: 0, area: -1, bits: -1 };
  for (let index = 0; (index + 1) * ENTRY <= directory.length; index += 1) {
    const entry = directory.subarray(index * ENTRY);
    const area = (entry[0] || 256) * (entry[1] || 256);
    const bits = entry.readUInt16LE(6) || (await storedBits(bytes, entry.readUInt32LE(12)));
    if (area > best.area || (area === best.area && bits > best.bits)) best = { index, area, bits };
  }
  return { index: best.index };
}

/** Some writers leave the bits out of the directory: then the image's own header has them. */
async function storedBits(bytes: Bytes, offset: number): Promise<number> {
  const header = await bytes.at(offset, 16);
  if (header.length < 16) return 0;
  return header[0] === 0x89 ? 32 : header.readUInt16LE(14);
}
