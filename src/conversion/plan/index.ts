import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { expectedNotes } from './expected-notes.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { misreadLabel } from './misread.ts';
import { drawPixels as rasterize, drawVector as renderPdf } from './rasterize.ts';
import { keepsAllFrames } from './selection.ts';
import { frameArguments, magickArguments } from './stages.ts';
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

/** Returns the label of a kind of file that this ImageMagick would show wrong; undefined if it shows the image right. */
export function findMisread(
  image: ImageInfo,
  options: ConvertOptions,
  tools: ToolContext,
): string | undefined {
  return misreadLabel({ image, options, tools, output: '' });
}

/** The commands that make the file the client asked for. */
export function plan(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = `${OUTPUT_STEM}.${OUTPUTS[options.format].extension}`;
  const job = { image, options, tools, output };
  return { steps: planSteps(job), output, notes: expectedNotes(job) };
}

function planSteps(job: PlanContext): Step[] {
  const { image, options, tools } = job;
  const able = MAGICK_FEATURES[tools.magick];
  if (image.type === 'svg' && options.format === 'pdf') return [renderPdf(job)];
  if (image.type === 'svg' && options.format === 'png') return [rasterize(job, job.output)];
  if (image.type === 'svg') return [rasterize(job, RASTERIZED_FILE), convertRasterized(job, RASTERIZED_FILE)];
  if (image.type === 'avif' && able.avif === 'heif') return decodeAvifFirst(job);
  if (options.format === 'webp' && keepsAllFrames(job) && able.animatedWebp === 'img2webp') {
    return [writeFrames(job), assembleWebp(job)];
  }
  return [{ tool: 'magick', args: magickArguments(job) }];
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
