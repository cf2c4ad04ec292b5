/** @module Selects the frames or pages of a file to convert. Pure. */
import { OUTPUTS } from '../../formats.ts';
import type { Page } from './image-info.ts';
import type { PlanContext } from './types.ts';

type ImageAndOptions = Pick<PlanContext, 'image' | 'options'>;

/** Returns whether all frames are converted: by default if the output can be animated, and on request as pages. */
export function keepsAllFrames({ image, options: { format, frames } }: ImageAndOptions): boolean {
  if (!image.animation || frames === 'first') return false;
  return OUTPUTS[format].animation || (OUTPUTS[format].pages && frames === 'all');
}

/** Returns the pages of a TIFF to convert. */
export function selectedPages({ image: { pages = [] }, options }: ImageAndOptions): readonly Page[] {
  return OUTPUTS[options.format].pages && options.pages !== 'first' ? pages : pages.slice(0, 1);
}

/** Returns whether a GIF stays a GIF of the same size, so that its pixels are not changed. */
export function isPassthrough(job: PlanContext): boolean {
  const { image, options } = job;
  const isUnresized = !options.width && !options.height;
  return isUnresized && image.type === 'gif' && options.format === 'gif' && keepsAllFrames(job);
}
