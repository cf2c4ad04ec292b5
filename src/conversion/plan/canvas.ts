import { OUTPUTS } from '../../formats.ts';
import { cropOffset, type Fitting, gravityName, type Offset, padOffset } from './fit.ts';
import { trustedFitting } from './size.ts';
import type { PlanContext, Size } from './types.ts';

/**
 * How a resized image gets the size of the box: `cover` cuts, `contain` adds. Where the size is not known for sure,
 * ImageMagick finds the place by gravity, which differs from it by one pixel at most. Pure.
 */

/** Cuts off what is outside of the box. librsvg draws no more of an SVG than that. */
export function crop(job: PlanContext): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = trustedFitting(job);
  if (!fitting) return withGravity(job, ['-crop', `${options.width}x${options.height}+0+0`]);
  return fills(fitting) ? [] : ['-crop', geometry(fitting.result, cropOffset(fitting, options)), '+repage'];
}

/** Adds borders up to the box. What is transparent in the picture stays so. */
export function pad(job: PlanContext): string[] {
  const { options } = job;
  const fitting = trustedFitting(job);
  if (options.fit !== 'contain' || (fitting && fills(fitting))) return [];
  const { x, y } = fitting ? padOffset(fitting, options) : { x: 0, y: 0 };
  const extend = fitting
    ? ['-extent', geometry(fitting.result, { x: -x, y: -y }), '+repage']
    : withGravity(job, ['-extent', `${options.width}x${options.height}`]);
  return ['-background', paddingColour(job), '-compose', 'Copy', ...extend, '-compose', 'Over'];
}

/** Whether there is nothing to cut off, and nothing to add. */
function fills({ resized, result }: Fitting): boolean {
  return resized.width === result.width && resized.height === result.height;
}

function withGravity({ options }: PlanContext, operation: readonly string[]): string[] {
  return ['-gravity', gravityName(options), ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: PlanContext): string {
  return background ?? (OUTPUTS[format].alpha === 'none' ? '#ffffff' : 'none');
}

/** A geometry of ImageMagick. */
function geometry({ width, height }: Size, offset?: Offset): string {
  const signed = (count: number): string => (count < 0 ? `${count}` : `+${Math.abs(count)}`);
  return `${width}x${height}${offset ? signed(offset.x) + signed(offset.y) : ''}`;
}
