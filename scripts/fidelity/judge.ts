/** @module Compares a result with what the independent decoders show. */
import sharp from 'sharp';
import { OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { type Difference, decode, difference, onGrey, type Pixels } from '../../test/helpers/pixels.ts';
import type { FileConversion, Source } from './convert-file.ts';
import { type Reference, withoutRepeats } from './reference.ts';

/** Kinds of problems, the worst first. */
export const PROBLEMS = ['failed', 'unreadable', 'size', 'frames', 'timing', 'leaked', 'differs'] as const;

/** Outcome of one comparison. */
export interface Verdict {
  readonly name: string;
  readonly format: OutputType;
  /** Kind of problem, as printed in the report; undefined if the result is correct. */
  readonly problem?: (typeof PROBLEMS)[number] | undefined;
  readonly detail: string;
  readonly measured?: Difference;
  /** PSNR in dB of the sharp encoder with the same settings. Only for lossy formats. */
  readonly sharps?: number | undefined;
  /** True if no independent decoder could read the file either. */
  readonly hopeless?: boolean;
}

/**
 * Maximum PSNR difference in dB between a lossy result and the result of sharp. Different encoders
 * and defaults cause it.
 */
const MAX_PSNR_LOSS = 1;
/** The same for GIF, where each program chooses the 256 colours differently. */
const MAX_PSNR_LOSS_GIF = 3;
/** PSNR in dB from which a difference is invisible, whatever sharp achieves. */
const INVISIBLE_PSNR = 43;
/**
 * Maximum mean absolute error of lossless formats over all channels (0 to 255), from rounding in
 * colour transforms.
 */
const MAX_ROUNDING_ERROR = 1;

/** Compares a conversion with all references and returns the verdict for the nearest one. */
export async function judge(
  source: Source,
  shown: readonly Reference[],
  attempt: FileConversion,
): Promise<Verdict> {
  const about = { name: source.name, format: attempt.format };
  if ('error' in attempt) {
    return { ...about, problem: 'failed', detail: attempt.error, hopeless: shown.length === 0 };
  }
  if (shown.length === 0)
    return { ...about, problem: 'unreadable', detail: 'by the independent decoders', hopeless: true };
  const comparisons = await Promise.all(shown.map((one) => compare(one, attempt.result, attempt.format)));
  const best = comparisons.reduce((a, b) =>
    a.problem && (!b.problem || meanError(a) > meanError(b)) ? b : a,
  );
  if (!best.problem && attempt.leaked.length > 0) {
    return { ...about, ...best, problem: 'leaked', detail: attempt.leaked.join(' ') };
  }
  return { ...about, ...best, detail: [best.detail, ...attempt.notes].filter(Boolean).join(', ') };
}

type Comparison = Pick<Verdict, 'problem' | 'detail' | 'measured' | 'sharps'>;

const meanError = ({ measured }: Comparison): number => measured?.mae ?? Number.POSITIVE_INFINITY;

async function compare(shown: Reference, result: Buffer, format: OutputType): Promise<Comparison> {
  const animated = OUTPUTS[format].animation && shown.moving !== undefined;
  const frames = animated ? await countFrames(result) : undefined;
  const same = frames === shown.delays.length || !animated ? shown : withoutRepeats(shown);
  const expected = flattened(animated ? (same.moving as Pixels) : same.still, format);
  const actual = await decode(result, format);
  const detail = shown.decoder === 'Pillow' ? 'as Pillow shows it' : '';
  if (actual.width !== expected.width || actual.height !== expected.height) {
    const sizes = `${actual.width}x${actual.height} instead of ${expected.width}x${expected.height}`;
    return { problem: animated && actual.width === expected.width ? 'frames' : 'size', detail: sizes };
  }
  if (animated && same.delays.length > 1) {
    const timing = await readTiming(result);
    const expectedTiming = `${same.delays} x${same.loopCount}`;
    if (timing !== expectedTiming)
      return { problem: 'timing', detail: `${timing} instead of ${expectedTiming}` };
  }
  const measured = difference(actual, expected);
  const pageHeight = animated ? shown.still.height : undefined;
  const sharps = isLossy(format) ? await sharpPsnr(expected, format, pageHeight) : undefined;
  const acceptable =
    sharps === undefined
      ? measured.mae <= MAX_ROUNDING_ERROR
      : measured.psnr >= Math.min(sharps - maxPsnrLoss(format), INVISIBLE_PSNR);
  return { problem: acceptable ? undefined : 'differs', detail, measured, sharps };
}

function flattened(pixels: Pixels, format: OutputType): Pixels {
  const { alpha } = OUTPUTS[format];
  if (alpha === 'none') return onGrey(pixels, 255);
  if (alpha === 'full') return pixels;
  const data = Buffer.from(pixels.data);
  for (let at = 3; at < data.length; at += 4) data[at] = (data[at] as number) > 127 ? 255 : 0;
  return { ...pixels, data };
}

const countFrames = async (result: Buffer): Promise<number> =>
  (await sharp(result, { animated: true }).metadata()).pages ?? 1;

async function readTiming(result: Buffer): Promise<string> {
  const { delay = [], loop = 0 } = await sharp(result, { animated: true }).metadata();
  return `${delay} x${loop}`;
}

const isLossy = (format: OutputType): boolean => format !== 'png' && format !== 'bmp';

const maxPsnrLoss = (format: OutputType): number => (format === 'gif' ? MAX_PSNR_LOSS_GIF : MAX_PSNR_LOSS);

/**
 * Encodes the image with sharp and decodes it again.
 *
 * @returns the PSNR in dB; undefined if the format cannot hold the image
 */
async function sharpPsnr(pixels: Pixels, format: OutputType, pageHeight = pixels.height) {
  const { width, height, data } = pixels;
  const image = sharp(data, { raw: { width, height, channels: 4, pageHeight } });
  if (format === 'webp') image.webp({ quality: 80 });
  else if (format === 'gif') image.gif({ dither: 0 });
  else image.jpeg({ quality: 80 });
  const shown = await decode(await image.toBuffer()).catch(() => undefined);
  return shown && shown.height === height ? difference(shown, pixels).psnr : undefined;
}
