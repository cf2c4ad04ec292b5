/**
 * @module Measures what `trim` keeps: the smallest area with all pixels that differ from the top
 * left corner. It then takes the place of `crop`.
 */
import { join } from 'node:path';
import { workFiles } from '../../files/workspace.ts';
import type { Area } from '../../images/image-info.ts';
import { invalidOutputError } from '../output/tool-errors.ts';
import { planBeforeResize } from '../plan/index.ts';
import { createJob } from '../plan/job.ts';
import { shownArea, vectorBox } from '../plan/size.ts';
import { nameFile, outputsOf, words } from '../plan/step.ts';
import type { ConversionJob, Measured } from '../plan/types.ts';
import { runSteps } from '../steps/run-steps.ts';
import type { Measurement } from './measurement.ts';

/** Image of one pixel for each frame, because ImageMagick has to write a file. */
const MEASURED_FILE = 'measured.miff';

/** Prints the areas that are kept, and removes the files that the commands have written. */
export const TRIMMED: Measurement<string> = {
  isOfResult: true,
  plan(job) {
    const shown = createTrimJob(job);
    return shown && { ...shown, plan: { steps: planBeforeResize(shown, measureTrim(shown)), notes: [] } };
  },
  async find(measuring, running) {
    const { steps } = measuring.plan;
    const { folder } = running.source;
    try {
      return (await runSteps(steps, measuring, running)).stdout;
    } finally {
      // All commands of a tool write the same files: 500 pages of a PDF can have as many.
      const last = new Map(steps.map((step) => [step.tool, step]));
      const written = [...last.values()].flatMap((step) => outputsOf(step, measuring) ?? [MEASURED_FILE]);
      const paths = written.map((name) => join(folder, nameFile(name, measuring.suffix)));
      await Promise.all(paths.map((path) => workFiles(folder).rm(path, { recursive: true, force: true })));
    }
  },
  read(printed, _, measuring, { source }) {
    const areas = parseTrimmed(printed, measuring);
    if (!areas) throw invalidOutputError('a frame was not measured', source);
    return { areas };
  },
};

/**
 * Derives the job to measure: the image before the resize, or an SVG at its size without `trim`.
 * Undefined if there is nothing to trim, if it has been measured, or if the size is not known.
 */
function createTrimJob(job: ConversionJob): ConversionJob | undefined {
  const { image, options, measured, tools, suffix, fittings } = job;
  const { trim, rotate, flip, crop, dpi, frames, pages } = options;
  if (trim === undefined || measured.areas || fittings.length === 0) return undefined;
  const own = { quality: 100, metadata: 'none', trim, rotate, flip, crop, dpi, frames, pages } as const;
  const { width, height, scale } = vectorBox(options);
  const drawn = { ...own, format: 'bmp', width, height, scale, enlarge: true } as const;
  return createJob(image, image.type === 'svg' ? drawn : { ...own, format: options.format }, tools, suffix);
}

/**
 * Returns arguments that print the area of each frame or page. ImageMagick compares the left and
 * the top with the top left corner, but the right and the bottom with their own corners. So each
 * image gets a border of one pixel of the first one's colour. Four strips take a third of the time
 * of a canvas below the image.
 */
function measureTrim({ options, fittings }: ConversionJob): string[] {
  const measured = fittings.flatMap(({ result }, at) => {
    const [width, height] = [result.width + 2, result.height + 2];
    return [
      ...words(`( -clone ${at} -extent ${width}x${height}-1-1 +repage`),
      ...fillWithCorner(`${width}x1`, '+0+0'),
      ...fillWithCorner(`${width}x1`, `+0+${height - 1}`),
      ...fillWithCorner(`1x${height}`, '+0+0'),
      ...fillWithCorner(`1x${height}`, `+${width - 1}+0`),
      '-print',
      'trim: %@\\n',
      ...words(') -delete -1'),
    ];
  });
  const settings = ['-compose', 'Copy', '-fuzz', `${options.trim}%`];
  return [...settings, ...measured, ...words(`-crop 1x1+0+0 +repage MIFF:${MEASURED_FILE}`)];
}

/** Fills a strip of the border with the colour of the corner inside of the border. */
const fillWithCorner = (size: string, offset: string): string[] =>
  words(`( +clone -crop 1x1+1+1 +repage -sample ${size}! ) -geometry ${offset} -composite`);

const PRINTED = /^trim: (\d+)x(\d+)\+(\d+)\+(\d+)$/gm;

/**
 * Returns what is kept of each page, or of all frames, in pixels of the upright image, and
 * undefined for one of one colour. Returns nothing if an area is missing.
 */
function parseTrimmed(printed: string, job: ConversionJob): Measured['areas'] {
  const boxes = [...printed.matchAll(PRINTED)].map(([, ...numbers]) => numbers.map(Number));
  if (boxes.length !== job.fittings.length) return undefined;
  const sizes = job.turnedSizes;
  const areas = boxes.map(([width = 0, height = 0, left = 0, top = 0], at): Area | undefined => {
    const size = sizes[at] ?? sizes[0];
    const result = job.fittings[at]?.result;
    if (width === 0 || height === 0 || !size || !result) return undefined;
    const shown = shownArea(size, job);
    const [across, down] = [shown.width / result.width, shown.height / result.height];
    return {
      x: shown.x + (left - 1) * across,
      y: shown.y + (top - 1) * down,
      width: width * across,
      height: height * down,
    };
  });
  return job.keepsAllFrames ? [unite(areas.filter((area) => area !== undefined))] : areas;
}

/** Returns the smallest area with all of these; undefined for none. */
function unite(areas: readonly Area[]): Area | undefined {
  if (areas.length === 0) return undefined;
  const x = Math.min(...areas.map((area) => area.x));
  const y = Math.min(...areas.map((area) => area.y));
  const right = Math.max(...areas.map((area) => area.x + area.width));
  const bottom = Math.max(...areas.map((area) => area.y + area.height));
  return { x, y, width: right - x, height: bottom - y };
}
