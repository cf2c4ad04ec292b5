/** @module Conversion to sRGB. An image that loses its profile must be sRGB, or its colours change. Pure. */
import { OUTPUTS } from '../../formats.ts';
import type { Page } from './image-info.ts';
import { isPassthrough, selectedPages } from './selection.ts';
import type { PlanContext } from './types.ts';

/** Converts CMYK before the resize, which would mix inks. */
export function cmykToSrgb(job: PlanContext): string[] {
  return job.image.cmyk && !pagesDiffer(job) ? toSrgb(job) : [];
}

/** Converts other colours after the resize, which leaves fewer pixels. */
export function rgbToSrgb(job: PlanContext): string[] {
  return job.image.cmyk || pagesDiffer(job) ? [] : toSrgb(job);
}

/** Converts a page while it is read, if the pages differ in their colours. */
export function pageToSrgb(job: PlanContext, page: Page): string[] {
  return pagesDiffer(job) ? toSrgb(asPage(job, page)) : [];
}

/** Returns whether the conversion to sRGB changes pixels. */
export function convertsColour(job: PlanContext): boolean {
  const { pages } = job.image;
  return pages ? selectedPages(job).some((page) => changesPixels(asPage(job, page))) : changesPixels(job);
}

function changesPixels(job: PlanContext): boolean {
  const { cmyk, lab, profile } = job.image;
  return convertsToSrgb(job) && (profile === 'other' || cmyk === true || lab === true);
}

function asPage(job: PlanContext, { cmyk = false, lab = false, profile = 'none' }: Page): PlanContext {
  return { ...job, image: { ...job.image, cmyk, lab, profile } };
}

function pagesDiffer(job: PlanContext): boolean {
  const kinds = selectedPages(job).map(
    ({ cmyk = false, lab = false, profile }) => `${cmyk} ${lab} ${profile}`,
  );
  return new Set(kinds).size > 1;
}

function toSrgb(job: PlanContext): string[] {
  const { image, tools } = job;
  const { cmyk, lab, profile, profileFile, declaredColour } = image;
  if (isPassthrough(job)) return [];
  const declared = declaredColour ? ['+profile', 'icc'] : []; // takes precedence over an embedded profile
  const assigned = profileFile ? [...declared, '-profile', `ICC:${profileFile}`] : [];
  if (!convertsToSrgb(job)) return declaredColour ? assigned : [];
  const convert = [
    ...['-intent', 'relative', '-black-point-compensation'],
    ...assigned,
    ...['-profile', tools.srgbProfile],
  ];
  // ImageMagick's conversion of CIELab and of images with an unusable profile needs no profile.
  if (lab || profile === 'useless')
    return ['+profile', 'icc', ...(cmyk || lab ? ['-colorspace', 'sRGB'] : [])];
  return [
    // An image whose profile could not be read is assumed not to be sRGB.
    ...(profile === 'other' || profile === undefined ? convert : []),
    ...(cmyk ? ['-colorspace', 'sRGB'] : []),
  ];
}

/**
 * Returns whether the image is converted to sRGB. Without `stripMetadata`, it keeps its profile and pixels if the
 * format can hold them and the tools find the profile. An HDR image never keeps its profile, which is not a colour
 * space but a mapping to a standard dynamic range.
 */
function convertsToSrgb({ image, options }: PlanContext): boolean {
  const { cmyk, lab, externalProfile, declaredColour } = image;
  const format = OUTPUTS[options.format];
  const isHdr = declaredColour !== undefined && 'hdr' in declaredColour.transfer;
  const holds = format.profile && !lab && !externalProfile && !isHdr && (!cmyk || format.cmyk);
  return options.stripMetadata || !holds;
}
