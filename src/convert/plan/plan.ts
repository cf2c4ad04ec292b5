import { type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import { drawPixels, drawVector } from './drawing.ts';
import { notesOf } from './notes.ts';
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
import { ABILITIES } from './versions.ts';
import { allFrames } from './wanted.ts';

/**
 * What a right conversion is, as data: a list of commands, worked out from what
 * the picture is, what the client wants and which ImageMagick will run. Pure:
 * no file, no clock, no environment. File names are relative to the job's folder.
 */

const DRAWN = 'drawn.png';

/** What librsvg makes by itself, with nothing in it that would have to go. */
const DRAWS: readonly OutputType[] = ['pdf', 'png'];

/** The tools without which no file of this type can become this format. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): readonly ToolName[] {
  if (type === 'svg') return DRAWS.includes(format) ? ['rsvg'] : ['rsvg', 'magick'];
  return type === 'avif' && ABILITIES[magick].avif === 'heif' ? ['heif', 'magick'] : ['magick'];
}

/** Whether this ImageMagick would show something else than is there, and nobody else can do it. */
export function isMisread({ pages = [] }: Picture, machine: Machine): boolean {
  return !ABILITIES[machine.magick].oldJpegInTiff && pages.some(({ oldJpeg }) => oldJpeg);
}

/** The commands that make the file the client asked for. */
export function plan(picture: Picture, options: ConvertOptions, machine: Machine): Plan {
  const output = `${OUTPUT_STEM}.${OUTPUTS[options.format].extension}`;
  const job = { picture, options, machine, output };
  return { steps: stepsOf(job), output, notes: notesOf(job) };
}

function stepsOf(job: Job): Step[] {
  const { picture, options, machine } = job;
  const able = ABILITIES[machine.magick];
  if (picture.type === 'svg' && options.format === 'pdf') return [drawVector(job)];
  if (picture.type === 'svg' && options.format === 'png') return [drawPixels(job, job.output)];
  if (picture.type === 'svg') return [drawPixels(job, DRAWN), convertDrawn(job, DRAWN)];
  if (picture.type === 'avif' && able.avif === 'heif') return decodeAvifFirst(job);
  if (options.format === 'webp' && allFrames(job) && able.movingWebp === 'img2webp') {
    return [writeFrames(job), assembleWebp(job)];
  }
  return [{ tool: 'magick', args: magickArguments(job) }];
}

/** Of several pictures libheif's tool writes each, with its number behind the name. */
function decodeAvifFirst(job: Job): Step[] {
  const { count, primary } = job.picture.stills ?? { count: 1, primary: 1 };
  const drawn = count > 1 ? DRAWN.replace('.', `-${primary}.`) : DRAWN;
  return [{ tool: 'heif', args: [INPUT_FILE, DRAWN] }, convertDrawn(job, drawn)];
}

function convertDrawn(job: Job, drawn: string): Step {
  return { tool: 'magick', args: magickArguments({ ...job, drawn }) };
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
