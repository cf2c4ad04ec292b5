/** @module Decodes a source with independent decoders: upright, in sRGB, 8 bits per channel. */
import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { decodeByPillow } from '../../test/helpers/pillow.ts';
import { difference, type Pixels, toPixels } from '../../test/helpers/pixels.ts';
import type { Source } from './convert-file.ts';

/** A source as one decoder shows it. */
export interface Reference {
  readonly decoder: 'sharp' | 'Pillow' | 'given';
  /** The image for outputs without animation. */
  readonly still: Pixels;
  /** All frames of an animation, stacked vertically. */
  readonly moving?: Pixels | undefined;
  readonly delays: readonly number[];
  /** Loop count; 0 is forever. */
  readonly loopCount: number;
}

/** Duration in ms that viewers use for a frame that states none. */
const DEFAULT_DELAY_MS = 100;

/** Merges consecutive identical frames and adds up their durations. */
export function withoutRepeats(reference: Reference): Reference {
  const { moving, delays, still } = reference;
  if (!moving) return reference;
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
    ...reference,
    delays: times,
    moving: { ...moving, height: still.height * frames.length, data: Buffer.concat(frames) },
  };
}

/**
 * Decodes the still image of a file: upright, in sRGB. The promise rejects for a file that the
 * decoder cannot read.
 */
export type Decoder = (bytes: Buffer) => Promise<Pixels>;

/** The independent decoders of still images, the faster one first. */
export const DECODERS: readonly Decoder[] = [
  (bytes) => toPixels(sharp(bytes).autoOrient()),
  (bytes) => decodeByPillow(bytes, 'first'),
];

/** Extension of a reference image, which follows the whole name of its source: `photo.tiff.png`. */
export const REFERENCE_EXTENSION = '.png';

/**
 * Decodes the source with each decoder that can read it, sharp first.
 *
 * @param path path of the source. If there is a reference image, at `path` with `.png` appended, no
 *   other still image counts.
 */
export async function referencesFor(source: Source, path: string): Promise<Reference[]> {
  const decoded = await decodeSource(source);
  const bytes = await readFile(path + REFERENCE_EXTENSION).catch(() => undefined);
  if (!bytes) return decoded;
  const still = await toPixels(sharp(bytes));
  const moving = decoded.find((reference) => reference.moving);
  return [{ delays: [], loopCount: 0, ...moving, decoder: 'given', still }];
}

/** Maximum mean absolute error between two decoders that agree: rounding in colour transforms. */
const MAX_DISAGREEMENT = 1;

/**
 * Describes how the decoders disagree about the still image; undefined if they agree, or only one
 * reads the file.
 */
export function disagreement([one, other]: readonly Reference[]): string | undefined {
  if (!one || !other) return undefined;
  const [a, b] = [one.still, other.still];
  const names = `${one.decoder} and ${other.decoder}`;
  if (a.width !== b.width || a.height !== b.height)
    return `${names} show ${a.width}x${a.height} and ${b.width}x${b.height}`;
  const { mae } = difference(a, b);
  return mae > MAX_DISAGREEMENT ? `${names} differ by ${mae.toFixed(2)}` : undefined;
}

async function decodeSource(source: Source): Promise<Reference[]> {
  const settled = await Promise.allSettled([decodeWithSharp(source), decodeWithPillow(source)]);
  return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

async function decodeWithSharp({ bytes }: Source): Promise<Reference> {
  const { pages = 1, delay = [], loop = 0, format } = await sharp(bytes).metadata();
  const moves = pages > 1 && (format === 'gif' || format === 'webp');
  return {
    decoder: 'sharp',
    still: await toPixels(sharp(bytes).autoOrient()),
    moving: moves ? await toPixels(sharp(bytes, { animated: true })) : undefined,
    delays: moves ? delay.map((ms) => ms || DEFAULT_DELAY_MS) : [],
    loopCount: loop,
  };
}

async function decodeWithPillow({ bytes }: Source): Promise<Reference> {
  const [still, all] = await Promise.all([decodeByPillow(bytes, 'first'), decodeByPillow(bytes, 'all')]);
  const moving = all.height > still.height ? all : undefined;
  return { decoder: 'Pillow', still, moving, delays: [], loopCount: 0 };
}
