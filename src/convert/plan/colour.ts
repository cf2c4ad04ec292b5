import { OUTPUTS } from '../../formats.ts';
import { passesThrough } from './reading.ts';
import type { Job } from './types.ts';

/** What becomes of colours: without its profile a picture must be sRGB, or it looks different. Pure. */

/** Resizing CMYK would mix inks; so it becomes RGB first. */
export function inksToSrgb(job: Job): string[] {
  return job.picture.cmyk ? toSrgb(job) : [];
}

/** All others after the resize, when there are fewer pixels. */
export function lightToSrgb(job: Job): string[] {
  return job.picture.cmyk ? [] : toSrgb(job);
}

/** Whether pixels are changed so that they are right as sRGB. */
export function convertsColour(job: Job): boolean {
  const { picture } = job;
  return wantsSrgb(job) && (picture.profile === 'other' || isNoRgb(job));
}

function toSrgb(job: Job): string[] {
  const { picture, machine } = job;
  if (!wantsSrgb(job) || passesThrough(job)) return [];
  const convert = ['-intent', 'relative', '-black-point-compensation', '-profile', machine.srgbProfile];
  return [
    // Nothing is to be done for a picture that is sRGB; what could not be looked into is assumed not to be.
    ...(picture.profile === 'other' || picture.profile === undefined ? convert : []),
    ...(picture.profile === 'useless' ? ['+profile', 'icc'] : []),
    // Without a profile to convert from, in the one way that needs none.
    ...(isNoRgb(job) ? ['-colorspace', 'sRGB'] : []),
  ];
}

/** A picture that keeps its metadata keeps profile and pixels, wherever the format can hold them. */
function wantsSrgb({ picture, options }: Job): boolean {
  const format = OUTPUTS[options.format];
  return options.stripMetadata || !format.profile || (picture.cmyk === true && !format.cmyk);
}

function isNoRgb({ picture: { cmyk, lab } }: Job): boolean {
  return cmyk === true || lab === true;
}
