/**
 * @module Plans conversions: image properties, options and tool versions become a list of commands, and the notes that are
 * known before these run. Pure.
 */
import type { Note } from '../../notes.ts';
import type { ToolName } from '../../tools.ts';
import { createReducingJob, explainAttention } from './attention.ts';
import * as colours from './colour.ts';
import * as decoding from './decode.ts';
import { EDIT_STAGES } from './edits.ts';
import * as encoding from './encode.ts';
import { createJob } from './job.ts';
import * as rendering from './rasterize.ts';
import * as resizing from './resize.ts';
import { countPages, numberedPages, staysVector, wantsAllFrames } from './size.ts';
import { DWEBP_THREADS, JXL_THREADS, KEPT_FILE, nameFile, SCALED_FILE, type Step, THREADS } from './step.ts';
import { createTrimJob, explainTrim, measureTrim } from './trim.ts';
import {
  type ConversionJob,
  DECODED_FILE,
  INPUT_FILE,
  type Plan,
  type PlannedJob,
  RESTORED_FILE,
  type Sentence,
} from './types.ts';
import { addWatermark, explainWatermark } from './watermark.ts';

/** Plans a conversion. */
export function plan(job: ConversionJob): Plan {
  const reducing = createReducingJob(job);
  return {
    decoding: job.decoder && planSteps(job.decoder, job)[0],
    measuring: planMeasuring(job),
    trimming: planTrimming(job),
    reducing: reducing && planJob(reducing),
    steps: job.programs.flatMap((tool) => planSteps(tool, job)),
    notes: NOTE_RULES.filter(({ applies }) => applies(job)).map(({ note }) => note),
  };
}

/** Returns the job with its plan. */
export const planJob = (job: ConversionJob): PlannedJob => ({ ...job, plan: plan(job) });

/** Plans a job again for another image or other options of the same size. */
export const planAnew = (
  { image, options, tools, suffix }: ConversionJob,
  changes: Partial<Pick<ConversionJob, 'image' | 'options'>>,
): PlannedJob => planJob(createJob(changes.image ?? image, changes.options ?? options, tools, suffix));

/**
 * Plans the rendering of an SVG to find out its size. The size is that of the rendered PNG.
 *
 * @returns undefined if the plan does not depend on the size, or if the header states it reliably
 */
function planMeasuring({ image, options }: ConversionJob): Step | undefined {
  const isKnown = image.type !== 'svg' || (image.width && !image.styled);
  const isNeeded = rendering.needsOwnSize(options) || options.watermark;
  return isKnown || !isNeeded ? undefined : rendering.renderOwnSize();
}

/** Plans to measure what `trim` keeps: the stages up to `crop`, and colours that can be compared. */
function planTrimming(job: ConversionJob): PlannedJob | undefined {
  const measured = createTrimJob(job);
  if (!measured) return undefined;
  const { programs } = measured;
  const rendering = programs
    .slice(0, programs.indexOf('magick'))
    .flatMap((tool) => planSteps(tool, measured));
  const stages = STAGES.slice(0, DECODED_STAGES).filter(([stage]) => stage !== colours.printHalfTransparent);
  const args = [...stages.flatMap(([stage]) => stage(measured)), ...measureTrim(measured)];
  return { ...measured, plan: { steps: [...rendering, { tool: 'magick', args }], notes: [] } };
}

/** Plans to encode an image again. The commands of {@link plan} for another quality have stored it. */
export function planAgain(job: ConversionJob): Step {
  const last = job.programs.at(-1) as ToolName;
  return last === 'magick' ? { tool: last, args: encodeArguments(job) } : (planSteps(last, job)[0] as Step);
}

const planSteps = (tool: ToolName, job: ConversionJob): Step[] =>
  [COMMANDS[tool](job)].flat().map((command) => ({ tool, ...command }));

type Command = Omit<Step, 'tool'>;

const COMMANDS: Readonly<Record<ToolName, (job: ConversionJob) => Command | Command[]>> = {
  rsvg: (job) => (staysVector(job.options) ? rendering.renderPdf(job) : rendering.renderPng(job)),
  heif: ({ image }) => ({ args: [INPUT_FILE, DECODED_FILE], deflateLevel: encoding.temporaryLevel(image) }),
  dwebp: (job) => ({
    args: [
      ...['-quiet', INPUT_FILE, '-resize', ...(job.scaledDecoding?.requested.split('x') ?? [])],
      ...[DWEBP_THREADS, '-ppm', '-o', SCALED_FILE],
    ],
  }),
  djxl: ({ image, isTranscoded, output }) => ({
    args: [
      ...(isTranscoded ? [output, RESTORED_FILE] : [INPUT_FILE, DECODED_FILE]),
      ...[JXL_THREADS, '--quiet'],
      ...(image.decodedDepth ? [`--bits_per_sample=${image.decodedDepth}`] : []),
    ],
    deflateLevel: 1, // the size of the PNG shows whether the image is flat
  }),
  magick: (job) => ({ args: magickStages(job).flat() }),
  img2webp: (job) => ({ args: encoding.webpArguments(job) }),
  cjxl: (job) => ({ args: encoding.encoderArguments(job) }),
  avifenc: (job) => ({ args: encoding.encoderArguments(job) }),
  pdfinfo: () => [], // inspects the file before there is a plan
  pdftocairo: rendering.renderPages,
};

type Stage = (job: ConversionJob) => readonly string[];

/** Stages in the order in which ImageMagick runs them: a pure function from a job to arguments, and what they do. */
const STAGES: readonly (readonly [Stage, Sentence?])[] = [
  [limitThreads],
  [resizing.shrinkOnLoad, resizing.explainShrinking],
  [ignoreBmpSize],
  [decoding.decode, decoding.explainDecoding],
  [resizing.fitDecoded],
  [decoding.coalesceFrames],
  [decoding.repairColours],
  [decoding.hideMissingPart, decoding.explainMissingPart],
  [decoding.cropToAperture],
  [resizing.orientFirst, decoding.explainOrientation],
  [decoding.crop, decoding.explainCrop],
  [colours.printHalfTransparent],
  [colours.cmykToSrgb],
  [resizing.dropOpaqueAlpha, resizing.explainOpaqueAlpha],
  [resizing.resize, resizing.explainResize],
  [resizing.cropToBox, resizing.explainCutting],
  [colours.rgbToSrgb, colours.explainColours],
  ...EDIT_STAGES,
  [addWatermark, explainWatermark],
  [colours.greysToColours],
  [colours.flatten, colours.explainFlattening],
  [resizing.pad, resizing.explainBorders],
  [colours.binaryAlpha, colours.explainBinaryAlpha],
  [encoding.removeMetadata, encoding.explainMetadata],
  [encoding.storeForRetries],
  [encoding.encode, encoding.explainEncoding],
];

/** Index of the stage that reads the image. */
const DECODE_STAGE = STAGES.findIndex(([stage]) => stage === decoding.decode);

/** Number of stages before the resize. */
const DECODED_STAGES = 1 + STAGES.findIndex(([stage]) => stage === colours.cmykToSrgb);

/** Returns the arguments of each stage of the command that converts the image. The last argument is the file that it writes. */
function magickStages(job: ConversionJob): (readonly string[])[] {
  return STAGES.map(([stage]) => stage(job));
}

/** States what a conversion does: a sentence for each stage that changes something. */
export function explain(job: ConversionJob): string[] {
  if (job.isTranscoded) return ['JPEG XL with the data of the JPEG, from which djxl restores the same bytes'];
  return [
    rendering.explainRendering,
    explainTrim,
    explainAttention,
    ...STAGES.map(([, sentence]) => sentence),
  ].flatMap((sentence) => sentence?.(job) ?? []);
}

/** Returns the arguments that encode the stored image again; see {@link KEPT_FILE}. */
function encodeArguments(job: ConversionJob): string[] {
  return [...limitThreads(), `MIFF:${KEPT_FILE}`, ...encoding.removeMetadata(job), ...encoding.encode(job)];
}

/** Limits the threads to processors that no other conversion uses. */
function limitThreads(): string[] {
  return ['-limit', 'thread', THREADS];
}

/** Ignores the file size that a BMP states: it can be 0, or smaller than the file. */
function ignoreBmpSize({ image }: ConversionJob): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Notes that are known before the commands run, in a fixed order. */
const NOTE_RULES: readonly {
  readonly note: Note;
  readonly applies: (job: ConversionJob) => boolean | undefined;
}[] = [
  {
    note: 'first-frame-only',
    applies: ({ image: { animation, hasIgnoredFrames, hasUncountedFrames }, options }) =>
      hasIgnoredFrames || ((animation !== undefined || hasUncountedFrames) && !wantsAllFrames(options)),
  },
  {
    note: 'first-page-only',
    applies: ({ image, options, pages }) => pages.length < countPages(image) && !numberedPages(options),
  },
  { note: 'not-trimmed', applies: ({ options }) => options.areas?.includes(undefined) },
  { note: 'truncated-input', applies: ({ image }) => image.truncated === true },
  { note: 'colour-converted-to-srgb', applies: colours.convertsColour },
  { note: 'metadata-partly-kept', applies: encoding.losesCopyright },
  { note: 'svg-features-ignored', applies: ({ image }) => image.hasUnsupportedFeatures === true },
];

/** The arguments of each stage of a result. */
interface Branch {
  readonly result: number;
  readonly stages: readonly (readonly string[])[];
}

/** Returns whether one command of ImageMagick can write all results. Each drawing of an SVG has its own size. */
export function canShare(jobs: readonly ConversionJob[]): boolean {
  return jobs.length > 1 && jobs.every(({ image, isTranscoded }) => image.type !== 'svg' && !isTranscoded);
}

/**
 * Plans one command of ImageMagick that writes several results of one image, and those that decode for it. Results share the
 * steps that are the same for them: reading the file, rotating it, resizing it. Where their steps begin to differ, each gets a
 * copy of the image, which shares its pixels until it is changed. The bytes of each result are those of its own command.
 */
export function planTogether(jobs: readonly PlannedJob[]): Step[] {
  const decoding = jobs.flatMap(({ plan, programs, suffix }) =>
    plan.steps
      .slice(0, programs.indexOf('magick'))
      .map((step) => ({ ...step, args: step.args.map((arg) => nameFile(arg, suffix)) })),
  );
  const branches = jobs.map((job, result) => ({
    result,
    stages: magickStages(job).map((stage) => stage.map((arg) => nameFile(arg, job.suffix))),
  }));
  // Without this option, the settings of one result would apply to the next.
  return [...decoding, { tool: 'magick', args: ['-respect-parentheses', ...planBranches(branches, 0)] }];
}

/** Returns the arguments of the stages from `start` on. The last argument is the file of the last result. */
function planBranches(branches: readonly Branch[], start: number): string[] {
  const [{ stages: first }] = branches as [Branch];
  const count = first.length;
  const isShared = (at: number): boolean =>
    branches.every(({ stages }) => sameArguments(stages[at] ?? [], first[at] ?? []));
  let end = start;
  while (end < count && isShared(end)) end += 1;
  const shared = first
    .slice(start, end)
    .flatMap((stage, at) => (start + at === DECODE_STAGE ? [...stage, ...printResults(branches)] : stage));
  const groups = Map.groupBy(branches, ({ stages }) => (stages[end] ?? []).join('\0'));
  if (branches.length === 1) return shared;
  const isRead = end > DECODE_STAGE;
  const planned = [...groups.values()].map((group) => [
    ...(isRead ? printResults(group) : []),
    ...planBranches(group, end),
  ]);
  const last = planned.pop() as string[];
  return [...shared, ...planned.flatMap((group) => writeCopy(group, isRead)), ...last];
}

function sameArguments(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((argument, at) => argument === other[at]);
}

/** Runs arguments that end in a file on a copy of the image, if it has been read. */
function writeCopy(args: readonly string[], isRead: boolean): string[] {
  const copy = isRead ? ['-clone', '0--1'] : [];
  return ['(', ...copy, ...args.slice(0, -1), '-write', ...args.slice(-1), '-delete', '0--1', ')'];
}

/** Prints which results the following output is about. */
function printResults(branches: readonly Branch[]): string[] {
  return ['-print', `results: ${branches.map(({ result }) => result).join(' ')}\\n`];
}

const RESULTS = /^results: ([\d ]+)\n/gm;

/** Returns what the command printed about one of the results, from everything that it printed. */
export function selectPrinted(stdout: string, result: number): string {
  const [common = '', ...sections] = stdout.split(RESULTS);
  const texts = sections.filter(
    (_, at) => at % 2 === 1 && sections[at - 1]?.split(' ').includes(String(result)),
  );
  return common + texts.join('');
}
