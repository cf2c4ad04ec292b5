import { OUTPUTS } from '../../formats.ts';
import { isPassthrough, selectedPages } from './selection.ts';
import { type Page, type PlanContext, PROFILE_FILE } from './types.ts';

/** What becomes of colours: without its profile a picture must be sRGB, or it looks different. Pure. */

/** Resizing CMYK would mix inks; so it becomes RGB first. */
export function cmykToSrgb(job: PlanContext): string[] {
  return job.image.cmyk && !pagesDiffer(job) ? toSrgb(job) : [];
}

/** All others after the resize, when there are fewer pixels. */
export function rgbToSrgb(job: PlanContext): string[] {
  return job.image.cmyk || pagesDiffer(job) ? [] : toSrgb(job);
}

/** Pages of different colours are converted each by itself, while they are read. */
export function pageToSrgb(job: PlanContext, page: Page): string[] {
  return pagesDiffer(job) ? toSrgb(asPage(job, page)) : [];
}

/** Whether pixels are changed so that they are right as sRGB. */
export function convertsColour(job: PlanContext): boolean {
  const { pages } = job.image;
  return pages ? selectedPages(job).some((page) => changesPixels(asPage(job, page))) : changesPixels(job);
}

function changesPixels(job: PlanContext): boolean {
  const { cmyk, lab, profile } = job.image;
  return wantsSrgb(job) && (profile === 'other' || cmyk === true || lab === true);
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
  const { cmyk, lab, profile, externalProfile, namedSpace } = image;
  if (isPassthrough(job)) return [];
  const named = namedSpace ? ['-profile', `ICC:${tools.namedProfiles[namedSpace]}`] : [];
  if (!wantsSrgb(job)) return named;
  const convert = [
    ...['-intent', 'relative', '-black-point-compensation'],
    ...named,
    ...(externalProfile ? ['-profile', `ICC:${PROFILE_FILE}`] : []),
    ...['-profile', tools.srgbProfile],
  ];
  // What has no use for its profile is turned in the one way that needs none.
  if (lab || profile === 'useless')
    return ['+profile', 'icc', ...(cmyk || lab ? ['-colorspace', 'sRGB'] : [])];
  return [
    // Nothing is to be done for a picture that is sRGB; what could not be looked into is assumed not to be.
    ...(profile === 'other' || profile === undefined ? convert : []),
    ...(cmyk ? ['-colorspace', 'sRGB'] : []),
  ];
}

/** A picture that keeps its metadata keeps profile and pixels, wherever the format can hold them and the tools see them. */
function wantsSrgb({ image, options }: PlanContext): boolean {
  const { cmyk, lab, externalProfile } = image;
  const format = OUTPUTS[options.format];
  const holds = format.profile && !lab && !externalProfile && (!cmyk || format.cmyk);
  return options.stripMetadata || !holds;
}
