/**
 * @module Plans conversions: image properties, options and tool versions become a list of commands, and the notes that are
 * known before these run. Pure.
 */
import { OUTPUTS } from '../../formats.ts';
import type { Note } from '../../notes.ts';
import type { ToolName } from '../../tools.ts';
import {
  binaryAlpha,
  cmykToSrgb,
  convertsColour,
  explainBinaryAlpha,
  explainColours,
  explainFlattening,
  flatten,
  greysToColours,
  printHalfTransparent,
  rgbToSrgb,
} from './colour.ts';
import {
  coalesceFrames,
  crop,
  decode,
  explainCrop,
  explainDecoding,
  explainMissingPart,
  explainOrientation,
  hideMissingPart,
  repairColours,
} from './decode.ts';
import {
  ENCODERS,
  EXTERNAL_ENCODERS,
  explainEncoding,
  LOSSLESS_EFFORT,
  temporaryLevel,
  transcodeArguments,
  WEBP_METHOD,
} from './encode.ts';
import { createReducingJob, explainAttention } from './job.ts';
import {
  explainRendering,
  needsOwnSize,
  renderOwnSize,
  renderPages,
  renderPdf,
  renderPng,
} from './rasterize.ts';
import {
  cropToBox,
  dropOpaqueAlpha,
  explainBorders,
  explainCutting,
  explainOpaqueAlpha,
  explainResize,
  explainShrinking,
  fitDecoded,
  orientFirst,
  pad,
  resize,
  shrinkOnLoad,
} from './resize.ts';
import { countPages, staysVector } from './size.ts';
import {
  DWEBP_THREADS,
  FILE_TO_ENCODE,
  JXL_THREADS,
  KEPT_FILE,
  SCALED_FILE,
  type Step,
  SUFFIX,
  THREADS,
} from './step.ts';
import {
  type ConversionJob,
  DECODED_FILE,
  INPUT_FILE,
  type Plan,
  type PlannedJob,
  RESTORED_FILE,
  type Sentence,
} from './types.ts';

/** Plans a conversion. */
export function plan(job: ConversionJob): Plan {
  const reducing = createReducingJob(job);
  return {
    decoding: job.decoder && planSteps(job.decoder, job)[0],
    measuring: planMeasuring(job),
    reducing: reducing && planJob(reducing),
    steps: job.programs.flatMap((tool) => planSteps(tool, job)),
    notes: NOTE_RULES.filter(({ applies }) => applies(job)).map(({ note }) => note),
  };
}

/** Returns the job with its plan. */
export const planJob = (job: ConversionJob): PlannedJob => ({ ...job, plan: plan(job) });

/**
 * Plans the rendering of an SVG to find out its size. The size is that of the rendered PNG.
 *
 * @returns undefined if the plan does not depend on the size, or if the header states it reliably
 */
function planMeasuring({ image, options }: ConversionJob): Step | undefined {
  const isKnown = image.type !== 'svg' || (image.width && !image.styled);
  return isKnown || !needsOwnSize(options) ? undefined : renderOwnSize();
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
  rsvg: (job) => (staysVector(job.options) ? renderPdf(job) : renderPng(job)),
  heif: ({ image }) => ({ args: [INPUT_FILE, DECODED_FILE], deflateLevel: temporaryLevel(image) }),
  dwebp: (job) => ({
    args: [
      ...['-quiet', INPUT_FILE, '-resize', ...(job.scaledDecoding?.requested.split('x') ?? [])],
      ...[DWEBP_THREADS, '-ppm', '-o', SCALED_FILE],
    ],
  }),
  // djxl 0.7 writes no PNG of channels with different depths, unless all get the same one.
  djxl: ({ image, isTranscoded, output }) => ({
    args: [
      ...(isTranscoded ? [output, RESTORED_FILE] : [INPUT_FILE, DECODED_FILE]),
      ...[JXL_THREADS, '--quiet'],
      ...(image.unevenDepth ? ['--bits_per_sample=8'] : []),
    ],
    deflateLevel: 1, // the size of the PNG shows whether the image is flat
  }),
  magick: (job) => ({ args: magickStages(job).flat() }),
  img2webp: (job) => ({ args: webpArguments(job) }),
  cjxl: (job) => ({ args: job.isTranscoded ? transcodeArguments(job) : encoderArguments(job) }),
  avifenc: (job) => ({ args: encoderArguments(job) }),
  pdfinfo: () => [], // inspects the file before there is a plan
  pdftocairo: renderPages,
};

/** Returns the arguments of the program that encodes the PNG of ImageMagick. */
function encoderArguments(job: ConversionJob): string[] {
  return [...(EXTERNAL_ENCODERS[job.options.format]?.args(job) ?? []), FILE_TO_ENCODE, job.output];
}

function webpArguments({ image, options, output }: ConversionJob): string[] {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const coding = options.lossless
    ? ['-lossless', '-q', String(LOSSLESS_EFFORT)]
    : ['-lossy', '-q', String(options.quality)];
  const frames = delaysMs.flatMap((delay, at) => [
    ...['-d', String(delay), ...coding, '-m', String(WEBP_METHOD)],
    `frame${SUFFIX}-${String(at).padStart(5, '0')}.pam`,
  ]);
  return ['-loop', String(loopCount), ...frames, '-o', output];
}

type Stage = (job: ConversionJob) => readonly string[];

/** Stages in the order in which ImageMagick runs them: a pure function from a job to arguments, and what they do. */
const STAGES: readonly (readonly [Stage, Sentence?])[] = [
  [limitThreads],
  [shrinkOnLoad, explainShrinking],
  [ignoreBmpSize],
  [decode, explainDecoding],
  [fitDecoded],
  [coalesceFrames],
  [repairColours],
  [hideMissingPart, explainMissingPart],
  [orientFirst, explainOrientation],
  [crop, explainCrop],
  [printHalfTransparent],
  [cmykToSrgb],
  [dropOpaqueAlpha, explainOpaqueAlpha],
  [resize, explainResize],
  [cropToBox, explainCutting],
  [rgbToSrgb, explainColours],
  [greysToColours],
  [flatten, explainFlattening],
  [pad, explainBorders],
  [binaryAlpha, explainBinaryAlpha],
  [stripMetadata, explainMetadata],
  [storeForRetries],
  [encode, explainEncoding],
];

/** Index of the stage that reads the image. */
export const DECODE_STAGE = STAGES.findIndex(([stage]) => stage === decode);

/** Returns the arguments of each stage of the command that converts the image. The last argument is the file that it writes. */
export function magickStages(job: ConversionJob): (readonly string[])[] {
  return STAGES.map(([stage]) => stage(job));
}

/** States what a conversion does: a sentence for each stage that changes something. */
export function explain(job: ConversionJob): string[] {
  if (job.isTranscoded) return ['JPEG XL with the data of the JPEG, from which djxl restores the same bytes'];
  return [explainRendering, explainAttention, ...STAGES.map(([, sentence]) => sentence)].flatMap(
    (sentence) => sentence?.(job) ?? [],
  );
}

/** Returns the arguments that encode the stored image again; see {@link KEPT_FILE}. */
function encodeArguments(job: ConversionJob): string[] {
  return [...limitThreads(), `MIFF:${KEPT_FILE}`, ...stripMetadata(job), ...encode(job)];
}

/** Limits the threads to processors that no other conversion uses. */
function limitThreads(): string[] {
  return ['-limit', 'thread', THREADS];
}

/** Ignores the file size that a BMP states: it can be 0, or smaller than the file. */
function ignoreBmpSize({ image }: ConversionJob): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Removes all metadata, or only what ImageMagick would add to it. */
function stripMetadata({ options }: ConversionJob): string[] {
  if (options.stripMetadata) return ['-strip'];
  return [...WORKING_FILE_DATES.flatMap((name) => ['+set', name]), ...NO_PNG_GAMMA];
}

function explainMetadata({ image: { metadata = [] }, options }: ConversionJob): string | undefined {
  const kinds = metadata.map((kind) => kind.toUpperCase()).join(' and ');
  return kinds === '' ? undefined : `${kinds} metadata is ${options.stripMetadata ? 'removed' : 'kept'}`;
}

/** Omits the gamma of 2.2 and the primaries that ImageMagick 6 declares in a PNG. Browsers would use them instead of sRGB. */
const NO_PNG_GAMMA = ['-define', 'png:exclude-chunks=gAMA,cHRM'];

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

/**
 * Stores the image if `maxBytes` can require ImageMagick to encode it again. MIFF holds frames and CMYK and is not
 * compressed: 6 megapixels take 0.05 s to write and 0.03 s to read; an uncompressed PNG takes 0.35 s and 0.1 s.
 */
function storeForRetries(job: ConversionJob): string[] {
  const { options, programs } = job;
  return options.maxBytes && programs.at(-1) === 'magick'
    ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`]
    : [];
}

function encode(job: ConversionJob): string[] {
  const { format } = job.options;
  // Each frame becomes a numbered, uncompressed file.
  if (job.programs.includes('img2webp')) return ['-depth', '8', `PAM:frame${SUFFIX}-%05d.pam`];
  const file = EXTERNAL_ENCODERS[format] ? FILE_TO_ENCODE : job.output;
  return [...ENCODERS[format](job), `${OUTPUTS[format].coder}:${file}`];
}

/** Notes that are known before the commands run, in a fixed order. */
const NOTE_RULES: readonly { readonly note: Note; readonly applies: (job: ConversionJob) => boolean }[] = [
  {
    note: 'first-frame-only',
    applies: ({ image, keepsAllFrames }) =>
      image.hasIgnoredFrames === true || (image.animation !== undefined && !keepsAllFrames),
  },
  { note: 'first-page-only', applies: ({ image, pages }) => pages.length < countPages(image) },
  { note: 'truncated-input', applies: ({ image }) => image.truncated === true },
  { note: 'colour-converted-to-srgb', applies: convertsColour },
  { note: 'svg-features-ignored', applies: ({ image }) => image.hasUnsupportedFeatures === true },
];
