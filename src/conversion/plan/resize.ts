import type { InputType } from '../../formats.ts';
import { keepsAllFrames, selectedPages } from './selection.ts';
import type { Size } from './size.ts';
import type { ConvertOptions, PlanContext } from './types.ts';

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

/** `>` never enlarges. An SVG was drawn at the size asked for already. */
export function resize(job: PlanContext): string[] {
  const { image, options } = job;
  if (image.type === 'svg' || (!options.width && !options.height)) return [];
  const size = orientedSize(job);
  const scale = size ? scaleOf(size, options) : 1;
  const pixels = boxShrink(image.type, scale);
  if (!size || pixels === 1) return lanczos(`${options.width ?? ''}x${options.height ?? ''}>`);
  const left = pixels / decoderShrink(job);
  const average = left === 1 ? [] : ['-scale', `${100 / left}%`];
  // Told exactly: from a rounded half, one in twenty would come out a pixel off.
  return [...average, ...lanczos(`${scaleSide(size.width, scale)}x${scaleSide(size.height, scale)}!`)];
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
  const size = job.image.type === 'jpg' ? orientedSize(job) : undefined;
  if (!size) return 1;
  const wanted = boxShrink('jpg', scaleOf(size, job.options));
  const dividesAll = (by: number) => [wanted, size.width, size.height].every((count) => count % by === 0);
  return SHRINK_STEPS.jpg.find(({ pixels }) => dividesAll(pixels))?.pixels ?? 1;
}

/** Above 1 where it would become larger. */
function scaleOf({ width, height }: Size, box: ConvertOptions): number {
  return Math.min((box.width ?? width) / width, (box.height ?? height) / height);
}

/** As ImageMagick reckons it, down to the last bit: half a pixel is rounded up (ParseMetaGeometry). */
function scaleSide(side: number, scale: number): number {
  return Math.max(1, Math.floor(side * scale + 0.5));
}

/** Those whose header tells the size for sure that they have when they have been read. */
const TRUSTED_HEADERS: readonly InputType[] = ['jpg', 'png', 'webp', 'bmp'];

/** The size as it is seen, where it is known for sure, and all that is to be resized has it. */
function orientedSize(job: PlanContext): Size | undefined {
  const { image } = job;
  const pages = selectedPages(job);
  const one = pages.length === 1 ? pages[0] : TRUSTED_HEADERS.includes(image.type) ? image : undefined;
  const { width, height, orientation = 1 } = one ?? {};
  if (!width || !height) return undefined;
  return orientation < 5 || keepsAllFrames(job) ? { width, height } : { width: height, height: width };
}
