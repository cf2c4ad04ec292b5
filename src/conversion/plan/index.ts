/**
 * @module Plans conversions: image properties, options and tool versions become a list of commands, and the notes that are
 * known before these run. Pure.
 */
import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { differsFromSrgb, type ImageInfo } from '../../images/image-info.ts';
import {
  binaryAlpha,
  cmykToSrgb,
  convertsColour,
  flatten,
  greysToColours,
  printHalfTransparent,
  rgbToSrgb,
} from './colour.ts';
import { coalesceFrames, decode, hideMissingPart, orient, repairColours } from './decode.ts';
import { externalDecoder, misreadLabel, planDecoding } from './decoders.ts';
import { ENCODERS, EXTERNAL_ENCODERS, type ExternalEncoder, LOSSLESS_EFFORT, WEBP_METHOD } from './encode.ts';
import { measure, needsOwnSize, renderPdf, renderPng } from './rasterize.ts';
import { crop, dropOpaqueAlpha, pad, resize, shrinkOnLoad } from './resize.ts';
import { keepsAllFrames, selectedPages } from './size.ts';
import {
  type ConvertOptions,
  KEPT_FILE,
  MAGICK_FEATURES,
  type Note,
  OUTPUT_STEM,
  type Plan,
  type PlanContext,
  type Step,
  TO_ENCODE,
  type ToolContext,
  type ToolName,
} from './types.ts';

const RASTERIZED_FILE = 'rasterized.png';

/** Formats that librsvg writes without ImageMagick. They contain no metadata that would have to be removed. */
const RSVG_OUTPUTS: readonly OutputType[] = ['pdf', 'png'];

/** Returns the tools that every conversion from this type to this format needs. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): readonly ToolName[] {
  if (type === 'svg' && RSVG_OUTPUTS.includes(format)) return ['rsvg'];
  const before = type === 'svg' ? 'rsvg' : externalDecoder(type, magick);
  const after = EXTERNAL_ENCODERS[format]?.tool;
  return [before, 'magick' as const, after].filter((tool) => tool !== undefined);
}

/** Returns the label of the kind of file if this version of ImageMagick misreads it, otherwise undefined. */
export function findMisread(
  image: ImageInfo,
  options: ConvertOptions,
  tools: ToolContext,
): string | undefined {
  return misreadLabel({ image, options, tools, output: '' });
}

/** Plans the commands of a conversion. An image that needs an external decoder must be decoded first. */
export function plan(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const decoding = planDecoding(image, tools);
  const rasterized = image.decoded ?? (decoding && [decoding.output]);
  const job = { image, options, tools, output, ...(rasterized && { rasterized }) };
  return { steps: planSteps(job), output, notes: expectedNotes(job) };
}

/** Plans to encode the same image again at another quality. The commands of {@link plan} have stored it. */
export function planAgain(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const job = { image, options, tools, output };
  return { steps: [encodeAgain(job)], output, notes: [] };
}

/**
 * Plans the rendering of an SVG to find out its size. The size is that of the rendered PNG.
 *
 * @returns undefined if the plan does not depend on the size, or if the header states it reliably
 */
export function planMeasuring(image: ImageInfo, options: ConvertOptions): Step | undefined {
  const isKnown = image.type !== 'svg' || (image.width && !image.styled);
  return isKnown || !needsOwnSize(options) ? undefined : measure(RASTERIZED_FILE);
}

function outputName({ format }: ConvertOptions): string {
  return `${OUTPUT_STEM}.${OUTPUTS[format].extension}`;
}

function planSteps(job: PlanContext): Step[] {
  const { image, options } = job;
  if (image.type === 'svg' && options.format === 'pdf') return [renderPdf(job)];
  // The borders of `contain` can have a background colour that must not fill transparent parts of the drawing.
  if (image.type === 'svg' && options.format === 'png' && options.fit !== 'contain')
    return [renderPng(job, job.output)];
  if (image.type === 'svg')
    return [renderPng(job, RASTERIZED_FILE), ...convert({ ...job, rasterized: [RASTERIZED_FILE] })];
  if (assemblesFrames(job)) return [writeFrames(job), assembleWebp(job)];
  return convert(job);
}

/** Returns whether ImageMagick writes each frame to a file, for img2webp to assemble. */
function assemblesFrames(job: PlanContext): boolean {
  const { animatedWebp } = MAGICK_FEATURES[job.tools.magick];
  return job.options.format === 'webp' && keepsAllFrames(job) && animatedWebp === 'img2webp';
}

function encodeAgain(job: PlanContext): Step {
  const encoder = EXTERNAL_ENCODERS[job.options.format];
  if (encoder) return encodeWith(encoder, job);
  return assemblesFrames(job) ? assembleWebp(job) : { tool: 'magick', args: encodeArguments(job) };
}

/** Plans ImageMagick alone, or ImageMagick and an external encoder for the PNG that ImageMagick writes. */
function convert(job: PlanContext): Step[] {
  const encoder = EXTERNAL_ENCODERS[job.options.format];
  if (!encoder) return [{ tool: 'magick', args: magickArguments(job) }];
  return [{ tool: 'magick', args: magickArguments({ ...job, output: TO_ENCODE }) }, encodeWith(encoder, job)];
}

function encodeWith({ tool, args }: ExternalEncoder, job: PlanContext): Step {
  return { tool, args: [...args(job), TO_ENCODE, job.output] };
}

/** Writes each frame to a numbered PNG file, for img2webp to assemble. */
function writeFrames(job: PlanContext): Step {
  const stages = STAGES.filter((stage) => !ENCODING.includes(stage)).flatMap((stage) => stage(job));
  const args = [...stages, '-depth', '8', '-define', 'png:compression-level=1', 'png:frame-%05d.png'];
  return { tool: 'magick', args };
}

function assembleWebp({ image, options, output }: PlanContext): Step {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const coding = options.lossless
    ? ['-lossless', '-q', String(LOSSLESS_EFFORT)]
    : ['-lossy', '-q', String(options.quality)];
  const frames = delaysMs.flatMap((delay, at) => [
    ...['-d', String(delay), ...coding, '-m', String(WEBP_METHOD)],
    `frame-${String(at).padStart(5, '0')}.png`,
  ]);
  return { tool: 'img2webp', args: ['-loop', String(loopCount), ...frames, '-o', output] };
}

/** Stages in the order in which ImageMagick runs them. Each is a pure function from a job to arguments. */
const STAGES: readonly ((job: PlanContext) => readonly string[])[] = [
  setMagickLimits,
  shrinkOnLoad,
  ignoreBmpSize,
  decode,
  coalesceFrames,
  repairColours,
  hideMissingPart,
  orient,
  printHalfTransparent,
  cmykToSrgb,
  dropOpaqueAlpha,
  resize,
  crop,
  rgbToSrgb,
  greysToColours,
  flatten,
  pad,
  binaryAlpha,
  stripMetadata,
  keep,
  encode,
];
const ENCODING: readonly ((job: PlanContext) => readonly string[])[] = [keep, encode];

/** Returns all arguments of the command that converts the image. */
function magickArguments(job: PlanContext): string[] {
  return STAGES.flatMap((stage) => stage(job));
}

/** Returns the arguments that encode the stored image again; see {@link KEPT_FILE}. */
function encodeArguments(job: PlanContext): string[] {
  return [...setMagickLimits(job), `MIFF:${KEPT_FILE}`, ...stripMetadata(job), ...encode(job)];
}

/**
 * Limits the threads to processors that no other conversion uses. Selects 16-bit colour transforms on ImageMagick 7, which
 * are four times as fast: 0.12 instead of 0.5 s for 3 megapixels. They interpolate in a table, with errors of up to 7 of 255
 * at the edge of sRGB. That is visible in a drawing, so a PNG gets the exact transform.
 */
function setMagickLimits({ image, tools: { threads = 1 } }: PlanContext): string[] {
  const isExact = image.type === 'png' && differsFromSrgb(image.profile);
  return ['-limit', 'thread', String(threads), '-define', `profile:highres-transform=${isExact}`];
}

/** Ignores the file size that a BMP states: it can be 0, or smaller than the file. */
function ignoreBmpSize({ image }: PlanContext): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Removes all metadata, or only what ImageMagick would add to it. */
function stripMetadata({ options }: PlanContext): string[] {
  if (options.stripMetadata) return ['-strip'];
  return [...WORKING_FILE_DATES.flatMap((name) => ['+set', name]), ...NO_PNG_GAMMA];
}

/** Omits the gamma of 2.2 and the primaries that ImageMagick 6 declares in a PNG. Browsers would use them instead of sRGB. */
const NO_PNG_GAMMA = ['-define', 'png:exclude-chunks=gAMA,cHRM'];

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

/**
 * Stores the image if `maxBytes` can require ImageMagick to encode it again. MIFF holds frames and CMYK and is not
 * compressed: 6 megapixels take 0.05 s to write and 0.03 s to read; an uncompressed PNG takes 0.35 s and 0.1 s.
 */
function keep({ options }: PlanContext): string[] {
  return options.maxBytes && !EXTERNAL_ENCODERS[options.format]
    ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`]
    : [];
}

function encode(job: PlanContext): string[] {
  const { options, output } = job;
  return [...ENCODERS[options.format](job), `${OUTPUTS[options.format].coder}:${output}`];
}

const NOTE_RULES: readonly { readonly note: Note; readonly applies: (job: PlanContext) => boolean }[] = [
  {
    note: 'first-frame-only',
    applies: (job) =>
      job.image.hasIgnoredFrames === true || (job.image.animation !== undefined && !keepsAllFrames(job)),
  },
  { note: 'first-page-only', applies: (job) => selectedPages(job).length < (job.image.pages?.length ?? 0) },
  { note: 'truncated-input', applies: ({ image }) => image.truncated === true },
  { note: 'colour-converted-to-srgb', applies: convertsColour },
  { note: 'svg-features-ignored', applies: ({ image }) => image.hasUnsupportedFeatures === true },
];

/** Returns the notes that apply to a conversion, in a fixed order. */
function expectedNotes(job: PlanContext): Note[] {
  return NOTE_RULES.filter(({ applies }) => applies(job)).map(({ note }) => note);
}
