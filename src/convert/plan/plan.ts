import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { moves } from './reading.ts';
import { frameArguments, magickArguments } from './stages.ts';
import {
  type ConvertOptions,
  INPUT_FILE,
  type Job,
  type Machine,
  OUTPUT_STEM,
  type Picture,
  type Plan,
  type Step,
  type ToolName,
} from './types.ts';

/**
 * What a right conversion is, as data: a list of commands, worked out from what
 * the picture is, what the client wants and which ImageMagick will run. Pure:
 * no file, no clock, no environment. File names are relative to the job's folder.
 */

const DRAWN = 'drawn.png';

/** The tools without which no file of this type can become this format. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): readonly ToolName[] {
  if (type === 'svg') return format === 'pdf' ? ['rsvg'] : ['rsvg', 'magick'];
  return type === 'avif' && magick === 6 ? ['heif', 'magick'] : ['magick'];
}

/** The commands that make the file the client asked for. */
export function plan(picture: Picture, options: ConvertOptions, machine: Machine): Plan {
  const output = `${OUTPUT_STEM}.${OUTPUTS[options.format].extension}`;
  const job = { picture, options, machine, output };

  if (picture.type === 'svg' && options.format === 'pdf') return { steps: [drawVector(job)], output };
  if (picture.type === 'svg') return { steps: [drawPixels(job), convertDrawn(job, DRAWN)], output };
  if (picture.type === 'avif' && machine.magick === 6) return { steps: decodeAvifFirst(job), output };
  if (movesToWebpOn6(job)) return { steps: [writeFrames(job), assembleWebp(job)], output };
  return { steps: [{ tool: 'magick', args: magickArguments(job) }], output };
}

/** On its standard input, librsvg has no folder that the drawing could read neighbours from. */
function drawPixels({ options }: Job): Step {
  return { tool: 'rsvg', args: ['-f', 'png', ...box(options), '-o', DRAWN], stdin: INPUT_FILE };
}

function drawVector({ options, output }: Job): Step {
  const points = ['--dpi-x', '72', '--dpi-y', '72'];
  return { tool: 'rsvg', args: ['-f', 'pdf', ...points, ...box(options), '-o', output], stdin: INPUT_FILE };
}

function box({ width, height }: ConvertOptions): string[] {
  if (!width && !height) return [];
  return ['-a', ...(width ? ['-w', String(width)] : []), ...(height ? ['-h', String(height)] : [])];
}

/**
 * 6 loses the transparency and the profile of an AVIF, and is 18 dB off in its colours; libheif's own
 * tool is right. Of several pictures it writes each, with its number behind the name.
 */
function decodeAvifFirst(job: Job): Step[] {
  const { count, primary } = job.picture.stills ?? { count: 1, primary: 1 };
  const drawn = count > 1 ? DRAWN.replace('.', `-${primary}.`) : DRAWN;
  return [{ tool: 'heif', args: [INPUT_FILE, DRAWN] }, convertDrawn(job, drawn)];
}

function convertDrawn(job: Job, drawn: string): Step {
  return { tool: 'magick', args: magickArguments({ ...job, drawn }) };
}

/** 6 writes a moving WebP with the wrong delays, without its loop count and with junk behind it. */
function movesToWebpOn6(job: Job): boolean {
  return job.machine.magick === 6 && job.options.format === 'webp' && moves(job);
}

function writeFrames(job: Job): Step {
  return { tool: 'magick', args: frameArguments(job) };
}

function assembleWebp({ picture, options, output }: Job): Step {
  const { delaysMs = [], plays = 0 } = picture.animation ?? {};
  const frames = delaysMs.flatMap((delay, at) => [
    ...['-d', String(delay), '-lossy', '-q', String(options.quality), '-m', '4'],
    `frame-${String(at).padStart(5, '0')}.png`,
  ]);
  return { tool: 'img2webp', args: ['-loop', String(plays), ...frames, '-o', output] };
}
