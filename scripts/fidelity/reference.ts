import sharp, { type Sharp } from 'sharp';
import { decodeByPillow } from '../../test/helpers/pillow.ts';
import type { Pixels } from '../../test/helpers/pixels.ts';
import type { Source } from './convert-file.ts';

/** A source as independent decoders show it: upright, in sRGB, 8 bits a channel. */

export interface Reference {
  readonly by: 'sharp' | 'Pillow';
  /** What stands for the file where the output cannot move. */
  readonly still: Pixels;
  /** All frames one below the other, when there are several. */
  readonly moving?: Pixels;
  readonly delays: readonly number[];
  /** How often it plays, 0 for ever. */
  readonly plays: number;
}

/** What viewers make of a frame that says nothing. */
const DEFAULT_DELAY_MS = 100;

/** The same to look at: frames that are like the one before only make it stay longer. */
export function withoutRepeats(shown: Reference): Reference {
  const { moving, delays, still } = shown;
  if (!moving) return shown;
  const size = moving.width * still.height * 4;
  const frames: Buffer[] = [];
  const times: number[] = [];
  for (const [at, delay] of delays.entries()) {
    const frame = moving.data.subarray(at * size, (at + 1) * size);
    if (frames.at(-1)?.equals(frame)) times.push((times.pop() ?? 0) + delay);
    else times.push(delay);
    if (times.length > frames.length) frames.push(frame);
  }
  return {
    ...shown,
    delays: times,
    moving: { ...moving, height: still.height * frames.length, data: Buffer.concat(frames) },
  };
}

/** What each decoder that can read the file makes of it, sharp first. */
export async function referenceFrom(source: Source): Promise<Reference[]> {
  const found = await Promise.allSettled([bySharp(source), byPillow(source)]);
  return found.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

async function bySharp({ bytes }: Source): Promise<Reference> {
  const { pages = 1, delay = [], loop = 0, format } = await sharp(bytes).metadata();
  const moves = pages > 1 && (format === 'gif' || format === 'webp');
  return {
    by: 'sharp',
    still: await pixels(sharp(bytes).autoOrient()),
    ...(moves && { moving: await pixels(sharp(bytes, { animated: true })) }),
    delays: moves ? delay.map((ms) => ms || DEFAULT_DELAY_MS) : [],
    plays: loop,
  };
}

async function pixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data };
}

async function byPillow({ bytes }: Source): Promise<Reference> {
  const [still, all] = await Promise.all([decodeByPillow(bytes, 'first'), decodeByPillow(bytes, 'all')]);
  return { by: 'Pillow', still, ...(all.height > still.height && { moving: all }), delays: [], plays: 0 };
}
