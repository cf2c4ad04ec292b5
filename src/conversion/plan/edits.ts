/** @module Edits after the resize: a row for each option with such an effect. Pure. */
import { type OptionWith, optionsWith } from '../../tables/options.ts';
import { crop, formatGeometry } from './position.ts';
import { pictureSize } from './resize.ts';
import { words } from './step.ts';
import { type ConversionJob, MAGICK_FEATURES, type Sentence } from './types.ts';

type Edit = readonly [stage: (job: ConversionJob) => readonly string[], explain: Sentence];

/** The stage of each edit, and what it does. */
const EDITS: Readonly<Record<OptionWith<'filter' | 'colours'>, Edit>> = {
  blur: [blur, ({ options: { blur: sigma } }) => (sigma ? `blurred by ${sigma} pixels` : undefined)],
  sharpen: [
    sharpen,
    ({ options: { sharpen: sigma } }) => (sigma ? `sharpened by ${sigma} pixels` : undefined),
  ],
  greyscale: [greyscale, ({ options }) => (options.greyscale ? 'colours become greys' : undefined)],
};

/** The stages in the order of the options. */
export const EDIT_STAGES = optionsWith('filter', 'colours').map((name) => EDITS[name]);

/** Sigma from which the filter by rows and columns is exact, and faster. Below: 35 dB, not 54. */
const MIN_SEPARABLE_SIGMA = 1;

const gaussian = (sigma: number | string): string[] => [
  Number(sigma) < MIN_SEPARABLE_SIGMA ? '-gaussian-blur' : '-blur',
  `0x${sigma}`,
];

/** Least sigma in pixels of an image that is reduced for the blur. */
const MIN_REDUCED_SIGMA = 5;
/** Fewest and most pixels a side that become one. With two, extending the edges takes as long. */
const [MIN_REDUCTION, MAX_REDUCTION] = [3, 8];

/**
 * Blurs the image. Transparent pixels count by their alpha, and pixels at the edges continue beyond
 * them. The time of the filter is in proportion to sigma, so a wide one is applied to averages of
 * blocks, and the result is interpolated. With a sigma of 100, this takes a tenth of the time. The
 * PSNR against the filter alone is at least 60 dB.
 */
function blur({ options: { blur: sigma }, trustedFitting: fitting }: ConversionJob): string[] {
  if (!sigma) return [];
  const block = Math.min(MAX_REDUCTION, Math.floor(sigma / MIN_REDUCED_SIGMA));
  if (!fitting || block < MIN_REDUCTION) return gaussian(sigma);
  const { width, height } = pictureSize(fitting);
  // The edges continue for a block or more: they count beyond the image, not averages at them.
  const blocks = { width: Math.ceil(width / block) + 2, height: Math.ceil(height / block) + 2 };
  const extended = { width: blocks.width * block, height: blocks.height * block };
  const edges = formatGeometry(extended, { x: -block, y: -block });
  // Averaging a block blurs, too, by the variance of its width.
  const remaining = Math.sqrt(sigma ** 2 - (block ** 2 - 1) / 12) / block;
  return [
    ...words('-virtual-pixel Edge -filter Point -interpolate Nearest'),
    ...words(
      `-set option:distort:viewport ${edges} -distort SRT 0 +repage -scale ${formatGeometry(blocks)}!`,
    ),
    ...gaussian(remaining.toFixed(3)),
    ...words(`-filter Catrom -resize ${formatGeometry(extended)}!`),
    ...crop({ width, height }, { x: block, y: block }),
  ];
}

/** Twice the destination minus the source, for `-compose Mathematics`. */
const ADDED_DIFFERENCE = '0,-1,2,0';

/**
 * Adds to the colours their difference from those of the blurred image. Alpha stays. `-unsharp`
 * ignores alpha: transparent pictures have 24 to 45 dB. Each frame is replaced by its result at the
 * end of the list, so that no second list is in memory.
 */
function sharpen({ options: { sharpen: sigma }, frameCount, tools }: ConversionJob): string[] {
  if (!sigma) return [];
  const blurred = ['(', '+clone', ...gaussian(sigma), '-alpha', 'off', ')'];
  const opaque = ['(', '+clone', ...blurred, '-alpha', 'off', '-compose', 'Mathematics', '-composite', ')'];
  const colourOperator = MAGICK_FEATURES.colourOperator[tools.magick];
  const replace = ['-channel', 'RGBK', '-compose', colourOperator, '-composite', '+channel'];
  const frame = ['(', '-clone', '0', ...opaque, ...replace, ')', '-delete', '0'];
  const frames = Array.from({ length: frameCount }, () => frame).flat();
  return ['-define', `compose:args=${ADDED_DIFFERENCE}`, ...frames, '-compose', 'Over'];
}

/**
 * Replaces colours by their luminance (IEC 61966-2-1), computed with linear light. Does not change
 * alpha. `-grayscale` reads a grey as linear unless it is declared as sRGB, and its result is
 * linear.
 */
function greyscale({ options }: ConversionJob): string[] {
  return options.greyscale
    ? ['-colorspace', 'sRGB', '-grayscale', 'Rec709Luminance', '-colorspace', 'sRGB']
    : [];
}
