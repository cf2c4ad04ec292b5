/**
 * @module Crops or pads a resized image to the size of the box, for `cover` and `contain`. If the size is not reliably
 * known, ImageMagick calculates the offset by gravity, which differs by at most one pixel. Pure.
 */
import { OUTPUTS } from '../../formats.ts';
import { cropOffset, type Fitting, gravityName, type Offset, padOffset } from './fit.ts';
import { trustedFitting } from './size.ts';
import type { PlanContext, Size } from './types.ts';

/** Crops the image to the box for `cover`. librsvg has cropped an SVG already. */
export function crop(job: PlanContext): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = trustedFitting(job);
  if (!fitting) return withGravity(job, ['-crop', `${options.width}x${options.height}+0+0`]);
  return fills(fitting)
    ? []
    : ['-crop', formatGeometry(fitting.result, cropOffset(fitting, options)), '+repage'];
}

/** Adds borders up to the box for `contain`. Transparent parts of the image stay transparent. */
export function pad(job: PlanContext): string[] {
  const { options } = job;
  const fitting = trustedFitting(job);
  if (options.fit !== 'contain' || (fitting && fills(fitting))) return [];
  const { x, y } = fitting ? padOffset(fitting, options) : { x: 0, y: 0 };
  const extend = fitting
    ? ['-extent', formatGeometry(fitting.result, { x: -x, y: -y }), '+repage']
    : withGravity(job, ['-extent', `${options.width}x${options.height}`]);
  return ['-background', paddingColour(job), '-compose', 'Copy', ...extend, '-compose', 'Over'];
}

/** Returns whether the resized image fills the box exactly. */
function fills({ resized, result }: Fitting): boolean {
  return resized.width === result.width && resized.height === result.height;
}

function withGravity({ options }: PlanContext, operation: readonly string[]): string[] {
  return ['-gravity', gravityName(options), ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: PlanContext): string {
  return background ?? (OUTPUTS[format].alpha === 'none' ? '#ffffff' : 'none');
}

/** Formats a geometry argument of ImageMagick. */
function formatGeometry({ width, height }: Size, offset?: Offset): string {
  const signed = (count: number): string => (count < 0 ? `${count}` : `+${Math.abs(count)}`);
  return `${width}x${height}${offset ? signed(offset.x) + signed(offset.y) : ''}`;
}
