/** @module Requests of the stress test and their expected statuses. */
import { readdirSync, readFileSync } from 'node:fs';
import sharp, { type Sharp } from 'sharp';
import { makeZip } from '../../src/cli/doctor/attack-files.ts';
import { INPUT_TYPES, type InputType, OUTPUT_TYPES, type OutputType } from '../../src/tables/formats.ts';
import { formWith } from '../../test/helpers/from-address.ts';
import { decode, difference, onGrey } from '../../test/helpers/pixels.ts';
import { scene, square } from '../fixtures/scene.ts';
import { mutate } from '../fuzz/mutate.ts';
import { HOSTILE } from './hostile.ts';
import type { Random } from './random.ts';

/** A request and its expected response. */
export interface Request {
  readonly what: string;
  readonly path: string;
  readonly form: () => FormData;
  /** Expected statuses. During a fault, 503 is acceptable as well. */
  readonly expected: readonly number[];
  /** Expected result of a valid request. */
  readonly result?: Buffer;
}

const FOLDER = new URL('../../fixtures/images/', import.meta.url).pathname;
const fixture = (name: string): Buffer => readFileSync(FOLDER + name);

/** Creates an image of noise, which compresses badly. */
export function noise(width: number, height: number, sigma: number): Sharp {
  const noise = { type: 'gaussian', mean: 128, sigma } as const;
  return sharp({ create: { width, height, channels: 3, background: 'grey', noise } });
}

/** Creates a JPEG of noise. */
export const noisyPhoto = (width: number, height: number, sigma: number, quality = 80): Promise<Buffer> =>
  noise(width, height, sigma).jpeg({ quality }).toBuffer();

/** Minimum PSNR in dB of a lossy result. Rotated, mirrored or discoloured images are below 20. */
const MIN_PSNR = 25;

/**
 * Converts every pair of formats once on a server without faults, verifies each result against its
 * source image, and returns requests that expect the same bytes.
 *
 * @throws {Error} if a conversion fails or a result does not match its source
 */
export async function goodRequests(base: string): Promise<Request[]> {
  const requests: Request[] = [];
  for (const input of INPUT_TYPES) {
    for (const format of OUTPUT_TYPES) {
      const file = fixture(`scene.${input}`);
      const form = () => formWith(file, 'file', { format });
      const answer = await fetch(`${base}/convert`, { method: 'POST', body: form() });
      const result = Buffer.from(await answer.arrayBuffer());
      if (answer.status !== 200) throw new Error(`${input} to ${format}: ${answer.status} ${result}`);
      await checkPicture(input, format, result);
      const what = `${input} to ${format}`;
      requests.push({ what, path: '/convert', form, expected: [200], result });
    }
  }
  return requests;
}

async function checkPicture(input: InputType, format: OutputType, result: Buffer): Promise<void> {
  const source = input === 'ico' ? square(64) : scene({ flat: input === 'gif' || input === 'svg' });
  const { psnr } = difference(onGrey(await decode(result, format), 255), onGrey(source, 255));
  if (psnr < MIN_PSNR)
    throw new Error(`${input} to ${format} shows a different image: ${psnr.toFixed(1)} dB`);
}

/** Common mistakes of users: the expected status, the file, and fields. */
type Mistake = readonly [expected: number, file: () => Buffer, fields?: Record<string, string>];
const BAD: Readonly<Record<string, Mistake>> = {
  'a text file': [415, () => Buffer.from('hello')],
  'an empty file': [400, () => Buffer.alloc(0)],
  'half a WebP': [400, () => fixture('scene.webp').subarray(0, 400)],
  '11 MiB': [413, () => Buffer.alloc(11 * 1024 ** 2, fixture('scene.jpg'))],
  'a quality of 1000': [400, () => fixture('scene.png'), { quality: '1000' }],
  'an unknown format': [400, () => fixture('scene.png'), { format: 'tga' }],
};

/** Returns requests with common mistakes. */
export const badRequests = (): Request[] =>
  Object.entries(BAD).map(([what, [expected, file, fields = {}]]) => {
    const form = () => formWith(file(), 'file', fields);
    return { what, path: '/convert', form, expected: [expected] };
  });

/**
 * Returns requests with hostile files.
 *
 * @param patient whether to include files whose conversion runs until the timeout
 */
export const hostileRequests = (patient: boolean): Request[] =>
  Object.entries(HOSTILE).flatMap(([what, [expected, file, { format = 'png', slow = false } = {}]]) => {
    if (slow && !patient) return [];
    const bytes = file();
    const form = () => formWith(bytes, 'file', { format });
    return { what, path: '/convert', form, expected };
  });

const MUTABLE = readdirSync(FOLDER).filter((name) =>
  /\.(png|jpg|gif|bmp|tiff|avif|ico|webp|svg)$/.test(name),
);

/**
 * Returns a request with a damaged fixture. Any status that an image can cause is acceptable.
 */
export function mutant(random: Random): Request {
  const name = random.pick(MUTABLE);
  const bytes = mutate(fixture(name), random.below);
  const format = random.pick(OUTPUT_TYPES);
  const what = `a changed ${name} to ${format}`;
  const form = () => formWith(bytes, 'file', { format });
  return { what, path: '/convert', form, expected: [200, 400, 413, 415, 503] };
}

/** Returns a batch of 1 to 6 random fixtures, in some cases as a ZIP archive. */
export function batch(random: Random): Request {
  const names = Array.from({ length: 1 + random.below(6) }, () => random.pick(MUTABLE));
  const files = names.map(fixture);
  const zipped = random.next() < 0.3;
  const zip = () =>
    makeZip(names.map((name, at) => ({ name: `${at}-${name}`, content: files[at] as Buffer })));
  const form = () =>
    formWith(zipped ? zip() : files, 'files', { format: random.pick(OUTPUT_TYPES), on_error: 'skip' });
  return { what: `a batch of ${names.length}`, path: '/batch', form, expected: [200] };
}
