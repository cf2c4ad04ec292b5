/**
 * @module Converts colours and transparency to those that the result can hold. An image that loses
 * its profile is converted to sRGB, because its colours would change otherwise. Pure.
 */
import { type ColourTablesFile, differsFromSrgb, type Page } from '../../images/image-info.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import { isOptionSet, optionsWith } from '../../tables/options.ts';
import { SRGB_PROFILE, words } from './step.ts';
import type { ConversionJob, Sentence } from './types.ts';

/** Converts CMYK before the resize, which would mix inks. */
export function cmykToSrgb(job: ConversionJob): string[] {
  return job.image.cmyk && !pagesDiffer(job) ? toSrgb(job) : [];
}

/** Converts other colours after the resize, which leaves fewer pixels. */
export function rgbToSrgb(job: ConversionJob): string[] {
  return job.image.cmyk || pagesDiffer(job) ? [] : toSrgb(job);
}

/** Returns the arguments to convert each page while it is read, if their colours differ. */
export function pageToSrgb(job: ConversionJob): (page: Page) => readonly string[] {
  if (!pagesDiffer(job)) return () => [];
  const isExact = isExactTransform(job);
  const pages = [...job.colourPages];
  const converted = new Map(pages.map(([kind, page]) => [kind, toSrgb(asPage(job, page), isExact)]));
  return (page) => converted.get(colourKind(page)) ?? [];
}

/** Returns whether a profile converts inks, before the resize. */
export const convertsInks = (job: ConversionJob): boolean =>
  job.image.cmyk === true && !pagesDiffer(job) && convertsToSrgb(job) && differsFromSrgb(job.image.profile);

/** Returns whether the conversion to sRGB changes pixels. */
export function convertsColour(job: ConversionJob): boolean {
  const { pages } = job.image;
  return pages
    ? [...job.colourPages.values()].some((page) => changesPixels(asPage(job, page)))
    : changesPixels(job);
}

export const explainColours: Sentence = (job) => {
  const { cmyk, lab, declaredColour, profile } = job.image;
  if (!convertsColour(job)) return profile === 'other' ? 'the colour profile is kept' : undefined;
  if (declaredColour) return `${'hdr' in declaredColour.transfer ? 'HDR' : 'declared colour space'} → sRGB`;
  return `${cmyk ? 'CMYK' : lab ? 'CIELab' : 'embedded colour profile'} → sRGB`;
};

function changesPixels(job: ConversionJob): boolean {
  if (job.isEmbedded) return false;
  const { cmyk, lab, profile } = job.image;
  return convertsToSrgb(job) && (differsFromSrgb(profile) || cmyk === true || lab === true);
}

function asPage(job: ConversionJob, { cmyk = false, lab = false, profile = 'none' }: Page): ConversionJob {
  return { ...job, image: { ...job.image, cmyk, lab, profile } };
}

/** Returns a text that differs for pages whose colours are converted differently. */
export const colourKind = ({ cmyk = false, lab = false, profile }: Page): string =>
  `${cmyk} ${lab} ${profile}`;

const pagesDiffer = ({ colourPages }: ConversionJob): boolean => colourPages.size > 1;

/**
 * Maximum number of pixels for which exact colour conversion is faster. The other way first makes a
 * table, which takes 20 ms. Per pixel, it is three times as fast: 3 megapixels take 0.1 instead of
 * 0.3 s.
 */
const MAX_EXACT_PIXELS = 250_000;

/**
 * Returns whether colours are converted exactly, instead of with a table of 16-bit values. The
 * table has errors of up to 7 of 255 at the edge of sRGB. That is visible in a drawing, so a PNG is
 * always converted exactly.
 */
function isExactTransform({ image, fittings }: ConversionJob): boolean {
  if (!differsFromSrgb(image.profile)) return false;
  const pixels = countPixels(fittings);
  return image.type === 'png' || (!image.cmyk && pixels > 0 && pixels <= MAX_EXACT_PIXELS);
}

const countPixels = (fittings: ConversionJob['fittings']): number =>
  fittings.reduce((sum, { resized }) => sum + resized.width * resized.height, 0);

/** Minimum pixels for tables instead of a profile: they take 8 ms before the first pixel. */
const MIN_TABLE_PIXELS = 40_000;
/**
 * Minimum pixels for tables between whose entries ImageMagick interpolates, for all 65 536 values.
 * That takes 8 ms more. Without, a sample differs by at most 1 of 255 (bench/README.md).
 */
const MIN_INTERPOLATED_PIXELS = 100_000;

/** Returns tables that convert to sRGB faster than the profile. Each frame would need its own. */
function tablesFor({ image, fittings, frameCount }: ConversionJob): ColourTablesFile | undefined {
  const isFaster = frameCount === 1 && countPixels(fittings) >= MIN_TABLE_PIXELS;
  return isFaster && differsFromSrgb(image.profile) ? image.colourTables : undefined;
}

/** @param exact see {@link isExactTransform} */
function toSrgb(job: ConversionJob, exact = isExactTransform(job)): string[] {
  const { type, cmyk, lab, profile, profileFile, declaredColour } = job.image;
  if (job.isPassthrough) return [];
  // Declared colours precede an embedded profile. ImageMagick would misread that of a JPEG.
  const replaced = declaredColour || type === 'jpg' ? ['+profile', 'icc'] : [];
  // Selects how ImageMagick 7 converts colours.
  const transform = ['-define', `profile:highres-transform=${exact}`];
  const assigned = profileFile ? [...replaced, '-profile', `ICC:${profileFile}`] : [];
  if (!convertsToSrgb(job)) {
    if (profile === 'unusable' && !declaredColour) return ['+profile', 'icc'];
    return profileFile ? [...transform, ...assigned] : [];
  }
  const intent = words('-intent relative -black-point-compensation');
  const convert = [...transform, ...intent, ...assigned, '-profile', SRGB_PROFILE];
  // ImageMagick's conversion of CIELab and of images with an unusable profile needs no profile.
  if (lab || profile === 'unusable')
    return ['+profile', 'icc', ...(cmyk || lab ? ['-colorspace', 'sRGB'] : [])];
  const tables = tablesFor(job);
  if (tables) {
    const isInterpolated = countPixels(job.fittings) >= MIN_INTERPOLATED_PIXELS;
    const table = (at: number): string[] => [`PPM:${tables.file}[${at}]`, '-clut'];
    const changed = [...table(0), '-color-matrix', tables.matrix, ...table(1)];
    const converted = isInterpolated
      ? changed
      : [...words('-interpolate NearestNeighbor'), ...changed, '+interpolate'];
    // The last profile describes an image without one, and changes nothing.
    return ['+profile', 'icc', ...converted, '-profile', SRGB_PROFILE];
  }
  return [
    // An image whose profile could not be read is assumed not to be sRGB.
    ...(differsFromSrgb(profile) || profile === undefined ? convert : []),
    ...(cmyk ? ['-colorspace', 'sRGB'] : []),
  ];
}

/**
 * Returns whether the image is converted to sRGB, as for an option with the effect `colours` and
 * for a watermark. Unless its metadata is removed, it keeps its profile and pixels if the result
 * can hold them and the tools find the profile. An HDR image never keeps its profile, which is not
 * a colour space but a mapping to a standard dynamic range.
 */
function convertsToSrgb({ image, options, programs }: ConversionJob): boolean {
  const { cmyk, lab, profile, externalProfile, animation, declaredColour } = image;
  const format = OUTPUTS[options.format];
  const isHdr = declaredColour !== undefined && 'hdr' in declaredColour.transfer;
  const isLost = (externalProfile && animation) || programs.includes('img2webp'); // which writes no profile
  const holds = format.profile && !lab && !isLost && !isHdr && (!cmyk || format.cmyk);
  const isEdited = optionsWith('colours').some((name) => isOptionSet(name, options[name]));
  const isChanged = isEdited || options.watermark !== undefined || options.metadata === 'none';
  return isChanged || !holds || (profile === 'grey' && !holdsGreys({ image, options }));
}

/**
 * Returns whether the result has only greys, as a profile of greys requires. The profile of
 * declared colours is not of greys.
 */
function holdsGreys({ image, options }: Pick<ConversionJob, 'image' | 'options'>): boolean {
  return OUTPUTS[options.format].greys && !image.declaredColour && !showsBackground(options);
}

/** Returns whether a given background colour can be visible in the result. */
function showsBackground(options: ConversionJob['options']): boolean {
  const { background, fit } = options;
  return background !== undefined && (fit === 'contain' || flattens(options));
}

/**
 * Declares greys to be colours if the image gets a background. Otherwise, ImageMagick 6 brightens
 * them beside a coloured border, and both versions turn a colour behind the image into a grey.
 */
export function greysToColours(job: ConversionJob): string[] {
  const staysCmyk = job.image.cmyk && !convertsToSrgb(job);
  return showsBackground(job.options) && !staysCmyk ? ['-set', 'colorspace', 'sRGB'] : [];
}

/** Returns whether the background replaces transparency. */
function flattens({ format, background }: ConversionJob['options']): boolean {
  const { alpha, takesBackground } = OUTPUTS[format];
  return alpha === 'none' || (takesBackground === true && background !== undefined);
}

/** Format of a line that ends in `true` or `false`. */
const OPAQUE = 'opaque: %[opaque]\\n';
/** Format of a line that ends in a number. */
const HALF_TRANSPARENT = 'half transparent: %[max]\\n';

/** Replaces transparency by the background colour, and prints whether there was any. */
export function flatten(job: ConversionJob): string[] {
  const { background = '#ffffff' } = job.options;
  if (!flattens(job.options)) return [];
  return [...printOpaque(job), '-background', background, '-alpha', 'remove', '-alpha', 'off'];
}

export const explainFlattening: Sentence = (job) =>
  flatten(job).length > 0 && job.image.type !== 'jpg'
    ? `transparent parts get the colour ${job.options.background ?? '#ffffff'}`
    : undefined;

/** Prints whether each frame is opaque. For a list, ImageMagick prints only that of the first. */
function printOpaque(job: ConversionJob): string[] {
  const print = ['-print', OPAQUE];
  const count = job.frameCount;
  if (count === 1) return print;
  const frames = Array.from({ length: count }, (_, at) => String(at));
  return frames.flatMap((at) => ['(', '-clone', at, ...print, '+delete', ')']);
}

/** Frames that are measured together: their copies take memory, and arguments are limited. */
const FRAMES_PER_MEASUREMENT = 8;

/**
 * Prints the maximum of 4a(1 − a) for outputs with binary transparency. It exceeds 0 if any alpha
 * is neither 0 nor 1. Runs before the resize, which makes edges partially transparent. A GIF and a
 * JPEG have no partial transparency.
 */
export function printHalfTransparent(job: ConversionJob): string[] {
  const { image, options } = job;
  if (OUTPUTS[options.format].alpha !== 'binary' || ['gif', 'jpg'].includes(image.type)) return [];
  // ImageMagick 6 extracts alpha that is off, too. `set` makes such a channel opaque.
  const extract = ['-alpha', 'set', '-alpha', 'extract', '-function', 'Polynomial', '-4,4,0'];
  const count = job.frameCount;
  if (count === 1) return ['(', '+clone', ...extract, '-print', HALF_TRANSPARENT, '+delete', ')'];
  const measure = [...extract, '-evaluate-sequence', 'Max', '-print', HALF_TRANSPARENT, '+delete'];
  return Array.from({ length: Math.ceil(count / FRAMES_PER_MEASUREMENT) }, (_, group) => {
    const first = group * FRAMES_PER_MEASUREMENT;
    const last = Math.min(first + FRAMES_PER_MEASUREMENT, count) - 1;
    return ['(', '-clone', `${first}-${last}`, ...measure, ')'];
  }).flat();
}

/** Makes each pixel opaque or transparent for outputs with binary transparency. */
export function binaryAlpha(job: ConversionJob): string[] {
  if (OUTPUTS[job.options.format].alpha !== 'binary' || job.isPassthrough) return [];
  return ['-channel', 'A', '-threshold', '50%', '+channel'];
}

export const explainBinaryAlpha: Sentence = (job) =>
  binaryAlpha(job).length > 0 && job.image.type !== 'jpg' ? 'each pixel is opaque or transparent' : undefined;
