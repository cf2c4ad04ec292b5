import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { expectedNotes } from './expected-notes.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { drawPixels, drawVector, measure, needsOwnSize } from './rasterize.ts';
import { keepsAllFrames } from './selection.ts';
import { encodeArguments, frameArguments, magickArguments } from './stages.ts';
import {
  type ConvertOptions,
  type ImageInfo,
  INPUT_FILE,
  OUTPUT_STEM,
  type Plan,
  type PlanContext,
  type Step,
  type ToolContext,
  type ToolName,
} from './types.ts';

/**
 * What a right conversion is, as data: a list of commands, worked out from what
 * the picture is, what the client wants and which ImageMagick will run. Pure:
 * no file, no clock, no environment. File names are relative to the job's folder.
 */

const RASTERIZED_FILE = 'rasterized.png';

/** What librsvg makes by itself, with nothing in it that would have to go. */
const RSVG_OUTPUTS: readonly OutputType[] = ['pdf', 'png'];

/** The tools without which no file of this type can become this format. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): readonly ToolName[] {
  if (type === 'svg') return RSVG_OUTPUTS.includes(format) ? ['rsvg'] : ['rsvg', 'magick'];
  return type === 'avif' && MAGICK_FEATURES[magick].avif === 'heif' ? ['heif', 'magick'] : ['magick'];
}

/** Whether this ImageMagick would show something else than is there, and nobody else can do it. */
export function isMisreadByMagick({ pages = [] }: ImageInfo, tools: ToolContext): boolean {
  return !MAGICK_FEATURES[tools.magick].oldJpegInTiff && pages.some(({ oldJpeg }) => oldJpeg);
}

/** The commands that make the file the client asked for. */
export function plan(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const job = { image, options, tools, output };
  return { steps: planSteps(job), output, notes: expectedNotes(job) };
}

/** The commands that encode the same picture again, at another quality, after those of {@link plan} have kept it. */
export function planAgain(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const job = { image, options, tools, output };
  const step: Step = assemblesFrames(job)
    ? assembleWebp(job)
    : { tool: 'magick', args: encodeArguments(job) };
  return { steps: [step], output, notes: [] };
}

/**
 * The command that draws an SVG to find out its size, where the plan depends on it and the header does not tell it for
 * sure. The size is that of the PNG which this command draws.
 */
export function planMeasuring(image: ImageInfo, options: ConvertOptions): Step | undefined {
  const isKnown = image.type !== 'svg' || (image.width && !image.styled);
  return isKnown || !needsOwnSize(options) ? undefined : measure(RASTERIZED_FILE);
}

function outputName({ format }: ConvertOptions): string {
  return `${OUTPUT_STEM}.${OUTPUTS[format].extension}`;
}

function planSteps(job: PlanContext): Step[] {
  const { image, options, tools } = job;
  const able = MAGICK_FEATURES[tools.magick];
  if (image.type === 'svg' && options.format === 'pdf') return [drawVector(job)];
  // The borders of `contain` may have a colour that the drawing itself does not get.
  if (image.type === 'svg' && options.format === 'png' && options.fit !== 'contain')
    return [drawPixels(job, job.output)];
  if (image.type === 'svg')
    return [drawPixels(job, RASTERIZED_FILE), convertRasterized(job, RASTERIZED_FILE)];
  if (image.type === 'avif' && able.avif === 'heif') return decodeAvifFirst(job);
  if (assemblesFrames(job)) return [writeFrames(job), assembleWebp(job)];
  return [{ tool: 'magick', args: magickArguments(job) }];
}

/** Whether the frames become files that another tool puts together. */
function assemblesFrames(job: PlanContext): boolean {
  const { animatedWebp } = MAGICK_FEATURES[job.tools.magick];
  return job.options.format === 'webp' && keepsAllFrames(job) && animatedWebp === 'img2webp';
}

/** Of several pictures libheif's tool writes each, with its number behind the name. */
function decodeAvifFirst(job: PlanContext): Step[] {
  const { count, primary } = job.image.images ?? { count: 1, primary: 1 };
  const rasterized = count > 1 ? RASTERIZED_FILE.replace('.', `-${primary}.`) : RASTERIZED_FILE;
  return [{ tool: 'heif', args: [INPUT_FILE, RASTERIZED_FILE] }, convertRasterized(job, rasterized)];
}

function convertRasterized(job: PlanContext, rasterized: string): Step {
  return { tool: 'magick', args: magickArguments({ ...job, rasterized }) };
}

function writeFrames(job: PlanContext): Step {
  return { tool: 'magick', args: frameArguments(job) };
}

function assembleWebp({ image, options, output }: PlanContext): Step {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const frames = delaysMs.flatMap((delay, at) => [
    ...['-d', String(delay), '-lossy', '-q', String(options.quality), '-m', '4'],
    `frame-${String(at).padStart(5, '0')}.png`,
  ]);
  return { tool: 'img2webp', args: ['-loop', String(loopCount), ...frames, '-o', output] };
}
