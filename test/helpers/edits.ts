/**
 * @module Edits of pictures, and what sharp makes of the same picture: the judge of the options
 * that change pixels.
 */
import { readFile } from 'node:fs/promises';
import sharp, { type Sharp } from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { readWatermark } from '../../src/conversion/input/watermark-image.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import { ServiceError } from '../../src/tables/errors.ts';
import { ALL_INPUT_TYPES, OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import type { OptionWith } from '../../src/tables/options.ts';
import { convertWith, typeOf } from './engine.ts';
import { decodeAny } from './extra.ts';
import { writeTempFile } from './hooks.ts';
import { difference, type Pixels, sizeOf, toPixels } from './pixels.ts';

/** An edit by options, and by sharp. */
export interface Edit {
  readonly options: Partial<ConvertOptions>;
  /** A picture for the source's watermark. */
  readonly watermark?: Buffer;
  /**
   * Does the same to a frame or page. sharp reorders the steps of one pipeline, so each step has
   * its own.
   */
  readonly steps: readonly ((frame: Sharp) => Sharp | Promise<Sharp>)[];
  /**
   * Greatest difference of a channel, 0 to 255, in an output without loss, or the least PSNR in dB,
   * also of an output without transparency, which is made of the edited picture.
   */
  readonly tolerance: number | { readonly psnr: number; readonly flattened?: number };
  /**
   * Formats whose result is not the edited picture: an icon has borders, and is reduced after the
   * edit, a GIF no partial transparency, and sharpening adds to loss.
   */
  readonly except?: readonly OutputType[];
}

const quarter = (angle: number) => (frame: Sharp) => frame.rotate(angle);

/** Applies a Gaussian function of a sigma, which sharp truncates at 20% by default. */
const blur = (frame: Sharp, sigma: number): Sharp =>
  frame.blur({ sigma, precision: 'float', minAmplitude: 0.001 });

function blurred(sigma: number): Edit {
  const steps = [(frame: Sharp) => blur(frame, sigma)];
  return { options: { blur: sigma }, steps, tolerance: { psnr: 40 } };
}

/** Adds to each colour its difference from the blurred one. */
function sharpened(sigma: number): Edit {
  const sharpen = async (frame: Sharp): Promise<Sharp> => {
    const { width, height, data } = await toPixels(frame.clone());
    const { data: smooth } = await toPixels(blur(frame, sigma));
    const sharper = Uint8ClampedArray.from(data, (value, at) =>
      at % 4 === 3 ? value : 2 * value - (smooth[at] ?? 0),
    );
    return open({ width, height, data: Buffer.from(sharper) });
  };
  return { options: { sharpen: sigma }, steps: [sharpen], tolerance: { psnr: 40, flattened: 28 } };
}

/** A red square at the default place of a watermark, with its default size. */
const marked: Edit = {
  options: {},
  watermark: Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="red"/></svg>',
  ),
  steps: [
    async (frame) => {
      const { width = 0, height = 0 } = await frame.clone().metadata();
      const side = Math.min(height, Math.max(1, Math.round(width * 0.2)));
      const margin = Math.round(Math.min(width, height) * 0.03);
      const square = { width: side, height: side, channels: 4, background: 'red' } as const;
      const [left, top] = [width - side - margin, height - side - margin];
      return frame.composite([{ input: { create: square }, left: Math.max(0, left), top: Math.max(0, top) }]);
    },
  ],
  tolerance: 1,
  except: ['ico'],
};

const turned = (rotate: 90 | 180 | 270): Edit => ({
  options: { rotate },
  steps: [quarter(rotate)],
  tolerance: 0,
});

/** Edits by the option that they are about. */
const BY_OPTION: Readonly<
  Record<OptionWith<'turn' | 'filter' | 'colours'> | 'watermark' | 'several', Readonly<Record<string, Edit>>>
> = {
  rotate: { 'rotate=90': turned(90), 'rotate=180': turned(180), 'rotate=270': turned(270) },
  flip: {
    'flip=horizontal': { options: { flip: 'horizontal' }, steps: [(frame) => frame.flop()], tolerance: 0 },
    'flip=vertical': { options: { flip: 'vertical' }, steps: [(frame) => frame.flip()], tolerance: 0 },
    'flip=both': { options: { flip: 'both' }, steps: [quarter(180)], tolerance: 0 },
  },
  blur: {
    'blur=2': { ...blurred(2), except: ['ico'] },
    'blur=0.5': blurred(0.5),
    'blur=16': { ...blurred(16), except: ['gif', 'ico'] },
    'blur=37.5': { ...blurred(37.5), except: ['gif', 'ico'] },
  },
  sharpen: {
    'sharpen=3': sharpened(3),
    'sharpen=0.5': sharpened(0.5),
    'sharpen=10': { ...sharpened(10), except: ['pdf'] },
  },
  greyscale: {
    greyscale: { options: { greyscale: true }, steps: [(frame) => frame.greyscale()], tolerance: 1 },
  },
  watermark: { watermark: marked },
  several: {
    'rotate=270, flip=horizontal, greyscale': {
      options: { rotate: 270, flip: 'horizontal', greyscale: true },
      steps: [quarter(270), (frame) => frame.flop(), (frame) => frame.greyscale()],
      tolerance: 1,
    },
    'rotate=90, flip=vertical': {
      options: { rotate: 90, flip: 'vertical' },
      steps: [quarter(90), (frame) => frame.flip()],
      tolerance: 0,
    },
    'blur=2, sharpen=3': {
      options: { blur: 2, sharpen: 3 },
      steps: [...blurred(2).steps, ...sharpened(3).steps],
      tolerance: { psnr: 40, flattened: 28 },
      except: ['ico'],
    },
  },
};

/** All edits, by a name for titles. */
export const EDITS = Object.values(BY_OPTION).flatMap(Object.entries<Edit>);

/** Returns what sharp makes of a frame. */
async function applyBySharp({ steps }: Edit, frame: Pixels): Promise<Pixels> {
  let edited = frame;
  for (const step of steps) {
    const made = await step(open(edited));
    edited = await toPixels(sharp(await made.png().toBuffer()));
  }
  return edited;
}

/**
 * Decodes the frames of an animation, the pages of a TIFF, or the only image of a result; the first
 * page of a PDF.
 */
async function decodeFrames(file: Buffer, format: string): Promise<Pixels[]> {
  if (!['gif', 'webp', 'tiff'].includes(format)) return [await decodeAny(file, format)];
  const { pages = 1 } = await sharp(file, { animated: true }).metadata();
  return Promise.all(Array.from({ length: pages }, (_, page) => toPixels(sharp(file, { page }))));
}

/** Converts a file, with this picture as its watermark, and decodes the frames of the result. */
export async function convertFrames(
  engine: ConversionEngine,
  file: Buffer,
  options: ConvertOptions,
  mark?: Buffer,
): Promise<Pixels[]> {
  const watermark = mark && (await readWatermark(await writeTempFile('watermark', mark), ALL_INPUT_TYPES));
  const input = { type: (await typeOf(file)) ?? 'png', bytes: file, watermark };
  const result = await convertWith(engine, input, options, ({ path }) => readFile(path));
  return decodeFrames(result, options.format);
}

/** Options of a conversion without loss, as far as the format can. */
export const baseOptions = (format: OutputType): ConvertOptions => ({
  format,
  quality: 100,
  metadata: 'none',
  // A PDF without loss has the colours of a JPEG in CMYK, unless it is edited.
  ...(OUTPUTS[format].lossless && !OUTPUTS[format].paper && { lossless: true }),
});

/** PSNR in dB of an edit of a result with loss, against the edited result without the edit. */
const LEAST_PSNR = 28;
/**
 * The same for an icon, in whose square an image with an odd side is half a pixel to the left and
 * to the top, and for few colours.
 */
const LEAST_COARSE_PSNR = 22;

/**
 * Compares the edited results of a file with what sharp makes of the result without an edit.
 *
 * @returns a line for each that is wrong. None is wrong if the file cannot be converted to the
 *   format with or without the edit.
 */
export async function findWrongEdits(
  engine: ConversionEngine,
  file: Buffer,
  format: OutputType,
  edits: typeof EDITS,
): Promise<string[]> {
  const make = (options: Partial<ConvertOptions>, mark?: Buffer): Promise<Pixels[] | string> =>
    convertFrames(engine, file, { ...baseOptions(format), ...options }, mark).catch((error: Error) => {
      if (!(error instanceof ServiceError)) throw error;
      return error.message;
    });
  const plain = await make({});
  const wrong: string[] = [];
  for (const [title, edit] of edits) {
    if (edit.except?.includes(format)) continue;
    const found = await findDifference(edit, format, plain, await make(edit.options, edit.watermark));
    if (found) wrong.push(`${format}, ${title}: ${found}`);
  }
  return wrong;
}

/**
 * Returns how an edited result differs from what sharp makes of the plain one. Either can be the
 * message of an error.
 */
async function findDifference(
  edit: Edit,
  format: OutputType,
  plain: Pixels[] | string,
  edited: Pixels[] | string,
): Promise<string | undefined> {
  if (typeof plain === 'string' || typeof edited === 'string')
    return plain === edited ? undefined : `${plain} became ${edited}`;
  if (plain.length !== edited.length) return `${plain.length} frames became ${edited.length}`;
  for (const [at, frame] of plain.entries()) {
    const expected = await applyBySharp(edit, frame);
    const found = edited[at] as Pixels;
    if (`${sizeOf(expected)}` !== `${sizeOf(found)}`)
      return `frame ${at} is ${sizeOf(found)} instead of ${sizeOf(expected)}`;
    const { max, psnr } = difference(expected, found);
    const isExact = ['png', 'bmp', 'tiff', 'webp', 'jxl'].includes(format);
    const least = ['ico', 'gif'].includes(format) ? LEAST_COARSE_PSNR : LEAST_PSNR;
    // 16 bits are rounded twice.
    const [tolerance, exact] =
      typeof edit.tolerance === 'number'
        ? [edit.tolerance * (format === 'jxl' ? 2 : 1), 0]
        : [255, (format === 'bmp' && edit.tolerance.flattened) || edit.tolerance.psnr];
    if (isExact ? max > tolerance || psnr < exact : psnr < least)
      return `frame ${at} differs by ${max} of 255, ${psnr.toFixed(1)} dB`;
  }
  return undefined;
}
