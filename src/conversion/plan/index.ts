import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { decoderOf, decodingOf } from './decoding.ts';
import { ENCODERS_AFTER, type EncoderAfter, LOSSLESS_EFFORT } from './encode.ts';
import { expectedNotes } from './expected-notes.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { misreadLabel } from './misread.ts';
import { drawPixels, drawVector, measure, needsOwnSize } from './rasterize.ts';
import { keepsAllFrames } from './selection.ts';
import { encodeArguments, frameArguments, magickArguments } from './stages.ts';
import {
  type ConvertOptions,
  type ImageInfo,
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
/** What ImageMagick leaves for a program that encodes. */
const TO_ENCODE = 'encode.png';

/** What librsvg makes by itself, with nothing in it that would have to go. */
const RSVG_OUTPUTS: readonly OutputType[] = ['pdf', 'png'];

/** The tools without which no file of this type can become this format. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): readonly ToolName[] {
  if (type === 'svg' && RSVG_OUTPUTS.includes(format)) return ['rsvg'];
  const before = type === 'svg' ? 'rsvg' : decoderOf(type, magick);
  const after = ENCODERS_AFTER[format]?.tool;
  return [before, 'magick' as const, after].filter((tool) => tool !== undefined);
}

/** Returns the label of a kind of file that this ImageMagick would show wrong; undefined if it shows the image right. */
export function findMisread(
  image: ImageInfo,
  options: ConvertOptions,
  tools: ToolContext,
): string | undefined {
  return misreadLabel({ image, options, tools, output: '' });
}

/** The commands that make the file the client asked for, of an image that another program has decoded where one has to. */
export function plan(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const decoding = decodingOf(image, tools);
  const rasterized = image.decoded ?? (decoding && [decoding.output]);
  const job = { image, options, tools, output, ...(rasterized && { rasterized }) };
  return { steps: planSteps(job), output, notes: expectedNotes(job) };
}

/** Plans to encode the same image again at another quality. The commands of {@link plan} have kept it. */
export function planAgain(image: ImageInfo, options: ConvertOptions, tools: ToolContext): Plan {
  const output = outputName(options);
  const job = { image, options, tools, output };
  return { steps: [encodeAgain(job)], output, notes: [] };
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
  const { image, options } = job;
  if (image.type === 'svg' && options.format === 'pdf') return [drawVector(job)];
  // The borders of `contain` may have a colour that the drawing itself does not get.
  if (image.type === 'svg' && options.format === 'png' && options.fit !== 'contain')
    return [drawPixels(job, job.output)];
  if (image.type === 'svg')
    return [drawPixels(job, RASTERIZED_FILE), ...convert({ ...job, rasterized: [RASTERIZED_FILE] })];
  if (assemblesFrames(job)) return [writeFrames(job), assembleWebp(job)];
  return convert(job);
}

/** Whether the frames become files that another tool puts together. */
function assemblesFrames(job: PlanContext): boolean {
  const { animatedWebp } = MAGICK_FEATURES[job.tools.magick];
  return job.options.format === 'webp' && keepsAllFrames(job) && animatedWebp === 'img2webp';
}

function encodeAgain(job: PlanContext): Step {
  const encoder = ENCODERS_AFTER[job.options.format];
  if (encoder) return encodeWith(encoder, job);
  return assemblesFrames(job) ? assembleWebp(job) : { tool: 'magick', args: encodeArguments(job) };
}

/** ImageMagick alone, or ImageMagick and a program that encodes the PNG that ImageMagick writes. */
function convert(job: PlanContext): Step[] {
  const encoder = ENCODERS_AFTER[job.options.format];
  if (!encoder) return [{ tool: 'magick', args: magickArguments(job) }];
  return [{ tool: 'magick', args: magickArguments({ ...job, output: TO_ENCODE }) }, encodeWith(encoder, job)];
}

function encodeWith({ tool, args }: EncoderAfter, job: PlanContext): Step {
  return { tool, args: [...args(job), TO_ENCODE, job.output] };
}

function writeFrames(job: PlanContext): Step {
  return { tool: 'magick', args: frameArguments(job) };
}

function assembleWebp({ image, options, output }: PlanContext): Step {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const coding = options.lossless
    ? ['-lossless', '-q', String(LOSSLESS_EFFORT)]
    : ['-lossy', '-q', String(options.quality)];
  const frames = delaysMs.flatMap((delay, at) => [
    ...['-d', String(delay), ...coding, '-m', '4'],
    `frame-${String(at).padStart(5, '0')}.png`,
  ]);
  return { tool: 'img2webp', args: ['-loop', String(loopCount), ...frames, '-o', output] };
}
