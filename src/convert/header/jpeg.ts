import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** Segments before the frame header that are worth looking at; real files have a few dozen. */
const MOST_SEGMENTS = 1000;

/** Size and colour model from the frame header (ITU-T T.81, B.2.2). */
export async function readJpeg(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  let offset = 2;
  for (let segment = 0; segment < MOST_SEGMENTS; segment += 1) {
    const head = await bytes.at(offset, 10);
    if (head.length < 10 || head[0] !== 0xff) return {};
    const marker = head[1] as number;
    if (marker === 0xff) {
      offset += 1; // a fill byte
    } else if (isFrameHeader(marker)) {
      return { height: head.readUInt16BE(5), width: head.readUInt16BE(7), cmyk: head[9] === 4 };
    } else if (hasNoLength(marker)) {
      offset += 2;
    } else {
      offset += 2 + head.readUInt16BE(2);
    }
  }
  return {};
}

/** SOF0 to SOF15 without DHT, JPG and DAC, which share the range. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** TEM and the restart markers stand alone. */
function hasNoLength(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}
