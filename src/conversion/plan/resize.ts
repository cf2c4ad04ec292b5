import { boxGeometry, type Fitting } from './fit.ts';
import { trustedFitting } from './size.ts';
import type { PlanContext } from './types.ts';

/**
 * How an image is resized. libjpeg averages while it decodes, if the image becomes much smaller. One filter does the
 * rest. bench/README.md has the measurements. Pure.
 */

/**
 * The inner two lobes of Lanczos, without the outer third, and with a narrower window that compensates for it. The
 * result differs from that of Lanczos by at least 42 dB, in two thirds of its time.
 */
const FILTER = [
  ...['-filter', 'Lanczos'],
  ...['-define', 'filter:support=2', '-define', 'filter:win-support=2.6'],
];

/**
 * How many pixels of a side libjpeg averages, from which reduction on. It averages within blocks, which shows at sharp
 * edges.
 */
const SHRINK_STEPS = {
  smooth: [
    { from: 17, pixels: 8 },
    { from: 6.6, pixels: 4 },
    { from: 3.3, pixels: 2 },
  ],
  detailed: [
    { from: 24, pixels: 8 },
    { from: 12, pixels: 4 },
    { from: 5, pixels: 2 },
  ],
} as const;

/** Lets libjpeg average while it decodes, which takes a fraction of the time. */
export function shrinkOnLoad(job: PlanContext): string[] {
  const { width = 0, height = 0 } = job.image;
  const pixels = decoderShrink(job, trustedFitting(job));
  if (pixels === 1) return [];
  return ['-define', `jpeg:size=${width / pixels}x${height / pixels}`];
}

/** Without `enlarge` no side grows. An SVG was drawn at the size asked for already. */
export function resize(job: PlanContext): string[] {
  const { image, options } = job;
  if (image.type === 'svg' || (!options.width && !options.height)) return [];
  const fitting = trustedFitting(job);
  // An image that is cut or gets borders must have the size from which their offsets were calculated. The proportions
  // of an image that libjpeg has averaged are rounded.
  const isExact = (options.fit ?? 'inside') !== 'inside' || decoderShrink(job, fitting) > 1;
  if (!fitting || !isExact) return [...FILTER, '-resize', boxGeometry(options)];
  const { width, height } = fitting.resized;
  return [...FILTER, '-resize', `${width}x${height}!`];
}

/**
 * Returns how many pixels of a side libjpeg averages to one: a divisor of both sides. libjpeg rounds up: a quarter of 2725
 * pixels is 682, which stands for 2728. At 300 pixels, that would shift the far edge by a third of a pixel (36 dB).
 */
function decoderShrink({ image }: PlanContext, fitting: Fitting | undefined): 1 | 2 | 4 | 8 {
  const { type, width = 0, height = 0, detailed } = image;
  if (type !== 'jpg' || !fitting) return 1;
  const dividesSides = (pixels: number): boolean => width % pixels === 0 && height % pixels === 0;
  const steps = SHRINK_STEPS[detailed ? 'detailed' : 'smooth'];
  return steps.find(({ from, pixels }) => fitting.scale <= 1 / from && dividesSides(pixels))?.pixels ?? 1;
}
