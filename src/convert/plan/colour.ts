import { OUTPUTS } from '../../formats.ts';
import { type Job, type Page, PROFILE_FILE } from './types.ts';
import { passesThrough, wantedPages } from './wanted.ts';

/** What becomes of colours: without its profile a picture must be sRGB, or it looks different. Pure. */

/** Resizing CMYK would mix inks; so it becomes RGB first. */
export function inksToSrgb(job: Job): string[] {
  return job.picture.cmyk && !pagesDiffer(job) ? toSrgb(job) : [];
}

/** All others after the resize, when there are fewer pixels. */
export function lightToSrgb(job: Job): string[] {
  return job.picture.cmyk || pagesDiffer(job) ? [] : toSrgb(job);
}

/** Pages of different colours are converted each by itself, while they are read. */
export function pageToSrgb(job: Job, page: Page): string[] {
  return pagesDiffer(job) ? toSrgb(asPage(job, page)) : [];
}

/** Whether pixels are changed so that they are right as sRGB. */
export function convertsColour(job: Job): boolean {
  const { pages } = job.picture;
  return pages ? wantedPages(job).some((page) => changes(asPage(job, page))) : changes(job);
}

function changes(job: Job): boolean {
  const { cmyk, lab, profile } = job.picture;
  return wantsSrgb(job) && (profile === 'other' || cmyk === true || lab === true);
}

function asPage(job: Job, { cmyk = false, lab = false, profile = 'none' }: Page): Job {
  return { ...job, picture: { ...job.picture, cmyk, lab, profile } };
}

function pagesDiffer(job: Job): boolean {
  const kinds = wantedPages(job).map(({ cmyk = false, lab = false, profile }) => `${cmyk} ${lab} ${profile}`);
  return new Set(kinds).size > 1;
}

function toSrgb(job: Job): string[] {
  const { picture, machine } = job;
  const { cmyk, lab, profile, profileApart } = picture;
  if (!wantsSrgb(job) || passesThrough(job)) return [];
  const convert = [
    ...['-intent', 'relative', '-black-point-compensation'],
    ...(profileApart ? ['-profile', `ICC:${PROFILE_FILE}`] : []),
    ...['-profile', machine.srgbProfile],
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
function wantsSrgb({ picture, options }: Job): boolean {
  const { cmyk, lab, profileApart } = picture;
  const format = OUTPUTS[options.format];
  const holds = format.profile && !lab && !profileApart && (!cmyk || format.cmyk);
  return options.stripMetadata || !holds;
}
