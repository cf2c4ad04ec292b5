import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { frameArguments, magickArguments, moves } from './stages.ts';
import {
  type ConvertOptions,
  DRAWN,
  INPUT_FILE,
  type Job,
  type Machine,
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

/** The tools without which no file of this type can become this format. */
export function toolsFor(type: InputType, format: OutputType): readonly ToolName[] {
  if (type !== 'svg') return ['magick'];
  return format === 'pdf' ? ['rsvg'] : ['rsvg', 'magick'];
}

/** The commands that make the file the client asked for. */
export function plan(picture: Picture, options: ConvertOptions, machine: Machine): Plan {
  const output = `out.${OUTPUTS[options.format].extension}`;
  const job = { picture, options, machine, source: INPUT_FILE, output };

  if (picture.type === 'svg' && options.format === 'pdf') return { steps: [drawVector(job)], output };
  if (picture.type === 'svg') return { steps: [drawPixels(job), convertDrawn(job)], output };
  if (picture.alphaOrProfile && machine.magick === 6)
    return { steps: [decodeAvif(), convertDrawn(job)], output };
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

/** 6 loses the transparency and the profile of an AVIF; libheif's own tool keeps both. */
function decodeAvif(): Step {
  return { tool: 'heif', args: [INPUT_FILE, DRAWN] };
}

function convertDrawn(job: Job): Step {
  return { tool: 'magick', args: magickArguments({ ...job, source: DRAWN }) };
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
