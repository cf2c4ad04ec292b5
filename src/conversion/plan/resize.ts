import type { InputType } from '../../formats.ts';
import { boxGeometry } from './fit.ts';
import { trustedFitting } from './size.ts';
import type { PlanContext } from './types.ts';

/**
 * How a picture gets smaller. What is to become much smaller is averaged first, 2, 4 or 8 pixels of a side to one: by
 * the decoder where it can, by ImageMagick where not. Lanczos does the rest. Pure.
 */

/**
 * How many pixels of a side are averaged, from which reduction on: so that 40 dB are kept to what Lanczos alone makes.
 * What is no JPEG may be a scan in two colours, which keeps fewest. bench/README.md has the figures.
 */
const SHRINK_STEPS = {
  jpg: [
    { from: 17, pixels: 8 },
    { from: 6.6, pixels: 4 },
    { from: 3.3, pixels: 2 },
  ],
  others: [
    { from: 17, pixels: 8 },
    { from: 7.5, pixels: 4 },
    { from: 3.5, pixels: 2 },
  ],
} as const;

type ShrinkFactor = 1 | 2 | 4 | 8;

/** Lets libjpeg average while it decodes, which leaves most of the work undone. */
export function shrinkOnLoad(job: PlanContext): string[] {
  const { width = 0, height = 0 } = job.image;
  const pixels = decoderShrink(job);
  return pixels === 1 ? [] : ['-define', `jpeg:size=${width / pixels}x${height / pixels}`];
}

/** Without `enlarge` no side grows. An SVG was drawn at the size asked for already. */
export function resize(job: PlanContext): string[] {
  const { image, options } = job;
  if (image.type === 'svg' || (!options.width && !options.height)) return [];
  const fitting = trustedFitting(job);
  const pixels = fitting ? boxShrink(image.type, fitting.scale) : 1;
  // What is cut or gets borders must have the size that the places of these were worked out for.
  const isExact = pixels > 1 || (options.fit ?? 'inside') !== 'inside';
  if (!fitting || !isExact) return lanczos(boxGeometry(options));
  const left = pixels / decoderShrink(job);
  const average = left === 1 ? [] : ['-scale', `${100 / left}%`];
  // Told exactly: from a rounded half, one in twenty would come out a pixel off.
  return [...average, ...lanczos(`${fitting.resized.width}x${fitting.resized.height}!`)];
}

function lanczos(geometry: string): string[] {
  return ['-filter', 'Lanczos', '-resize', geometry];
}

function boxShrink(type: InputType, scale: number): ShrinkFactor {
  return SHRINK_STEPS[type === 'jpg' ? type : 'others'].find(({ from }) => scale <= 1 / from)?.pixels ?? 1;
}

/**
 * How much of that libjpeg does: only what divides both sides. It rounds up what is left of others, so that its last
 * pixel stands for some beyond the edge and all before it end up shifted: by a third of a pixel, 2725 at a quarter
 * are 36 dB at 300.
 */
function decoderShrink(job: PlanContext): ShrinkFactor {
  const { type, width = 0, height = 0 } = job.image;
  const fitting = type === 'jpg' ? trustedFitting(job) : undefined;
  if (!fitting) return 1;
  const wanted = boxShrink('jpg', fitting.scale);
  const dividesAll = (by: number) => [wanted, width, height].every((count) => count % by === 0);
  return SHRINK_STEPS.jpg.find(({ pixels }) => dividesAll(pixels))?.pixels ?? 1;
}
