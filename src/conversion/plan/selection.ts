import { OUTPUTS } from '../../formats.ts';
import type { Page, PlanContext } from './types.ts';

/** Which of a file's pictures the output is to have. Pure. */

/** What is asked for, of what. */
type Asked = Pick<PlanContext, 'image' | 'options'>;

/** All frames of an animation are wanted: by default where they can move, as pages only when asked for. */
export function keepsAllFrames({ image, options: { format, frames } }: Asked): boolean {
  if (!image.animation || frames === 'first') return false;
  return OUTPUTS[format].animation || (OUTPUTS[format].pages && frames === 'all');
}

/** The pages of a TIFF that the output is to have. */
export function selectedPages({ image: { pages = [] }, options }: Asked): readonly Page[] {
  return OUTPUTS[options.format].pages && options.pages !== 'first' ? pages : pages.slice(0, 1);
}

/** A GIF that stays a GIF of the same size needs no new pixels. */
export function isPassthrough(job: PlanContext): boolean {
  const { image, options } = job;
  const asItIs = !options.width && !options.height && options.format === 'gif';
  return asItIs && image.type === 'gif' && keepsAllFrames(job);
}
