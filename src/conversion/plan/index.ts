/** @module Plans conversions: image, options and tools become commands, and known notes. Pure. */
import type { ImageInfo } from '../../images/image-info.ts';
import { INPUTS, type InputType } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import type { ToolName } from '../../tables/tools.ts';
import * as colours from './colour.ts';
import * as decoding from './decode.ts';
import { planDocument } from './document.ts';
import { EDIT_STAGES } from './edits.ts';
import * as encoding from './encode.ts';
import * as external from './external-encoders.ts';
import { deriveAgain, magickDecoder, toolsFor } from './job.ts';
import {
  DECODED_PNG,
  DECODED_RESULT,
  encodeAndDecode,
  firstQuality,
  ofStrips,
  REFERENCE_FILE,
  storeCompared,
  stripsOf,
} from './likeness.ts';
import * as rendering from './rasterize.ts';
import * as resizing from './resize.ts';
import { countPages, numberedPages, staysVector, wantsAllFrames } from './size.ts';
import {
  DECODED_PIXEL,
  DWEBP_THREADS,
  FILE_TO_ENCODE,
  JXL_THREADS,
  KEPT_FILE,
  nameFile,
  SCALED_FILE,
  type Step,
  THREADS,
  words,
} from './step.ts';
import { changesTiming } from './timing.ts';
import {
  type ConversionJob,
  DECODED_FILE,
  INPUT_FILE,
  type PlannedJob,
  RESTORED_FILE,
  type Sentence,
} from './types.ts';
import { addWatermark, explainWatermark } from './watermark.ts';

/** Plans a conversion, as far as it is known. What tools measure can change it; see `measure/`. */
export function planJob(job: ConversionJob): PlannedJob {
  const notes = (Object.keys(NOTE_RULES) as Note[]).filter((note) => NOTE_RULES[note]?.(job));
  return { ...job, plan: { steps: planCommands(job), notes, document: planDocument(job) } };
}

/** Plans all commands, or those up to the first quality that is tried. */
function planCommands(job: ConversionJob): Step[] {
  if (job.search !== 'likeness') return job.programs.flatMap((tool) => planSteps(tool, job));
  const [last, ...others] = job.programs.toReversed();
  const storing = last === 'magick' ? job.programs : others.toReversed();
  const trial = last === 'magick' ? [] : planTrial(job, firstQuality(job));
  return [...storing.flatMap((tool) => planSteps(tool, job)), ...trial];
}

/** Plans a job again for its image after a repair. */
export const planAnew = (job: ConversionJob, image: ImageInfo): PlannedJob =>
  planJob(deriveAgain(job, { image }));

/** Plans to decode the image of a job to PNG, if ImageMagick cannot read it. */
export const planDecoding = (job: ConversionJob): Step[] => (job.decoder ? planSteps(job.decoder, job) : []);

/** Plans the stages before the resize, with comparable colours, and then these arguments. */
export function planBeforeResize(job: ConversionJob, args: readonly string[]): Step[] {
  const stages: Stage[] = [...STAGES.slice(0, DECODED_STAGES).map(([stage]) => stage), colours.cmykToSrgb];
  const rendering = job.programs.slice(0, job.programs.indexOf('magick'));
  return [
    ...rendering.flatMap((tool) => planSteps(tool, job)),
    { tool: 'magick', args: [...stages.flatMap((stage) => stage(job)), ...args] },
  ];
}

/** Plans to encode an image or strips, and to decode it, to compare with {@link REFERENCE_FILE}. */
export function planTrial(compared: ConversionJob, quality: number): Step[] {
  const job: ConversionJob = { ...compared, options: { ...compared.options, quality } };
  const type = job.options.format as InputType;
  const coder = magickDecoder(type, job.tools.magick);
  const encoding = planAgain(job);
  const read = words(`${coder ?? 'PNG'}:${coder ? job.output : DECODED_PNG} -depth 8 PAM:${DECODED_RESULT}`);
  const steps: Step[] =
    encoding.tool === 'magick'
      ? [{ ...encoding, args: encodeAndDecode(encoding.args, coder as string) }]
      : [
          encoding,
          ...(coder ? [] : [planDecodingTo(job, type)]),
          { tool: 'magick', args: [...limitThreads(), ...read] },
        ];
  if (!stripsOf(job)) return steps;
  const isShared = (arg: string): boolean =>
    [REFERENCE_FILE, DECODED_RESULT].some((name) => arg.includes(name));
  return steps.map((step) => ({
    ...step,
    args: step.args.map((arg) => (isShared(arg) ? arg : ofStrips(arg))),
  }));
}

/** Plans to decode what pngquant has read and written, so that they can be compared. */
export const planPaletteComparison = ({ output }: ConversionJob): Step => ({
  tool: 'magick',
  args: [
    ...limitThreads(),
    ...words(`PNG:${FILE_TO_ENCODE} -depth 8 -write PAM:${REFERENCE_FILE} -delete 0`),
    ...words(`PNG:${output} -depth 8 PAM:${DECODED_RESULT}`),
  ],
});

/** Plans to decode a result that ImageMagick cannot read. */
function planDecodingTo(job: ConversionJob, type: InputType): Step {
  const tool = toolsFor(type, 'png', job.tools.magick)[0] as ToolName;
  const [step] = planSteps(tool, { ...job, isTranscoded: false });
  const names: Readonly<Record<string, string>> = { [INPUT_FILE]: job.output, [DECODED_FILE]: DECODED_PNG };
  const { args, ...decoding } = step as Step;
  return { ...decoding, deflateLevel: 0, args: args.map((arg) => names[arg] ?? arg) };
}

/** Plans to encode an image again. The commands of {@link planJob} have stored it. */
export function planAgain(job: ConversionJob): Step {
  const tool = job.programs.at(-1) as ToolName;
  if (tool !== 'magick') return planSteps(tool, job)[0] as Step;
  const stored = [...limitThreads(), `MIFF:${KEPT_FILE}`];
  return { tool, args: [...stored, ...encoding.removeMetadata(job), ...encoding.encode(job)] };
}

const planSteps = (tool: ToolName, job: ConversionJob): Step[] =>
  [COMMANDS[tool](job)].flat().map((command) => ({ tool, ...command }));

type Command = Omit<Step, 'tool'>;

const COMMANDS: Readonly<Record<ToolName, (job: ConversionJob) => Command | Command[]>> = {
  rsvg: (job) => (staysVector(job.options) ? rendering.renderPdf(job) : rendering.renderPng(job)),
  heif: ({ image }) => ({ args: [INPUT_FILE, DECODED_FILE], deflateLevel: encoding.temporaryLevel(image) }),
  dwebp: ({ scaledDecoding }) => ({
    args: [
      ...words(`-quiet ${INPUT_FILE} -resize ${scaledDecoding?.requested.replace('x', ' ')}`),
      DWEBP_THREADS,
      ...words(`-ppm -o ${SCALED_FILE}`),
    ],
  }),
  djxl: ({ image, isTranscoded, output }) => ({
    args: [
      ...(isTranscoded ? [output, RESTORED_FILE] : [INPUT_FILE, DECODED_FILE]),
      JXL_THREADS,
      '--quiet',
      ...(image.decodedDepth ? [`--bits_per_sample=${image.decodedDepth}`] : []),
    ],
    deflateLevel: 1, // the size of the PNG shows whether the image is flat
  }),
  magick: (job) => ({ args: job.isEmbedded ? decodeOnly() : magickStages(job).flat() }),
  img2webp: (job) => ({ args: external.webpArguments(job) }),
  cwebp: (job) => ({ args: external.exactWebpArguments(job) }),
  cjxl: (job) => ({ args: external.encoderArguments(job) }),
  avifenc: (job) => ({ args: external.encoderArguments(job) }),
  pngquant: (job) => ({ args: external.paletteArguments(job), stdout: job.output }),
  pdfinfo: () => [], // inspects the file before there is a plan
  qpdf: () => [], // combines the results of several files
  pdftocairo: rendering.renderPages,
};

type Stage = (job: ConversionJob) => readonly string[];

/** Stages in ImageMagick's order: a pure function from a job to arguments, and what it does. */
const STAGES: readonly (readonly [Stage, Sentence?])[] = [
  [limitThreads],
  [resizing.shrinkOnLoad, resizing.explainShrinking],
  [ignoreBmpSize],
  [encoding.readUndithered],
  [decoding.decode, decoding.explainDecoding],
  [resizing.fitDecoded],
  [decoding.coalesceFrames],
  [decoding.repairColours],
  [decoding.hideMissingPart, decoding.explainMissingPart],
  [decoding.cropToAperture],
  [resizing.orientFirst, decoding.explainOrientation],
  [decoding.crop, decoding.explainCrop],
  [colours.printHalfTransparent],
  [resizing.dropOpaqueAlpha, resizing.explainOpaqueAlpha],
  [resizing.average],
  [colours.cmykToSrgb],
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
  [
    (job) => (job.search === 'likeness' ? storeCompared(job) : encoding.encode(job)),
    encoding.explainEncoding,
  ],
];

/** Index of the stage that reads the image. */
const DECODE_STAGE = STAGES.findIndex(([stage]) => stage === decoding.decode);

/** Number of stages up to an upright and cut image. */
const DECODED_STAGES = 1 + STAGES.findIndex(([stage]) => stage === decoding.crop);

/** Returns the arguments of each stage of the command. The last one is the file that it writes. */
function magickStages(job: ConversionJob): (readonly string[])[] {
  return STAGES.map(([stage]) => stage(job));
}

/** States what a conversion does: a sentence for each stage that changes something. */
export function explain(job: ConversionJob): string[] {
  if (job.isEmbedded) return ['PDF with the data of the JPEG as it is'];
  if (job.isTranscoded) return ['JPEG XL with the data of the JPEG, from which djxl restores the same bytes'];
  return [
    rendering.explainRendering,
    decoding.explainTrim,
    resizing.explainAttention,
    ...STAGES.map(([, sentence]) => sentence),
  ].flatMap((sentence) => sentence?.(job) ?? []);
}

/** Limits the threads to processors that no other conversion uses. */
function limitThreads(): string[] {
  return ['-limit', 'thread', THREADS];
}

/** Decodes a JPEG for a PDF at an eighth of its size, to find out whether it is damaged. */
const decodeOnly = (): string[] => [
  ...limitThreads(),
  ...words(
    `-define jpeg:size=1x1 ${INPUTS.jpg.coder}:${INPUT_FILE} -crop 1x1+0+0 +repage MIFF:${DECODED_PIXEL}`,
  ),
];

/** Ignores the file size that a BMP states: it can be 0, or smaller than the file. */
function ignoreBmpSize({ image }: ConversionJob): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Notes that are known before the commands run, in a fixed order. */
const NOTE_RULES: Readonly<Partial<Record<Note, (job: ConversionJob) => boolean | undefined>>> = {
  'first-frame-only': ({ image: { animation, hasIgnoredFrames, hasUncountedFrames }, options }) =>
    hasIgnoredFrames || ((animation !== undefined || hasUncountedFrames) && !wantsAllFrames(options)),
  'first-page-only': ({ image, options, pages }) =>
    pages.length < countPages(image) && !numberedPages(options),
  'not-trimmed': ({ measured }) => measured.areas?.includes(undefined),
  'truncated-input': ({ image }) => image.truncated,
  'colour-converted-to-srgb': colours.convertsColour,
  'hdr-removed': ({ image, isTranscoded }) => image.gainMap && !isTranscoded,
  'metadata-partly-kept': encoding.losesCopyright,
  'timing-changed': changesTiming,
  'svg-features-ignored': ({ image, tools }) =>
    image.hasUnsupportedFeatures || (image.hasNewFeatures && !tools.drawsNewFeatures),
};

/** What the plans of several results are made of. */
interface Branch {
  readonly suffix: string;
  /** Commands that decode for it. */
  readonly decoding: readonly Step[];
  /** Arguments of each stage, also as one text: 12 results of 500 frames can compare 200 000. */
  readonly stages: readonly { readonly args: readonly string[]; readonly text: string }[];
}

/** Arguments of one command, in several parts. */
type Parts = readonly (readonly string[])[];

/** Returns whether one command can write all results. Each drawing of an SVG has its own size. */
export function canShare(jobs: readonly ConversionJob[]): boolean {
  const isAlone = ({ image, isTranscoded, isEmbedded }: ConversionJob): boolean =>
    image.type === 'svg' || isTranscoded || isEmbedded;
  return jobs.length > 1 && !jobs.some(isAlone);
}

/** Returns the part of one result in {@link planTogether}. */
export function planBranch(job: PlannedJob): Branch {
  const { plan, programs, suffix } = job;
  const named = (args: readonly string[]): string[] => args.map((arg) => nameFile(arg, suffix));
  return {
    suffix,
    decoding: plan.steps
      .slice(0, programs.indexOf('magick'))
      .map((step) => ({ ...step, args: named(step.args) })),
    stages: magickStages(job).map((stage) => {
      const args = named(stage);
      return { args, text: args.join('\0') };
    }),
  };
}

/**
 * Plans one command of ImageMagick that writes several results of one image, in several parts, and
 * those that decode for it. Results share the steps that are the same for them. Where these begin
 * to differ, each gets a copy of the image, which shares its pixels until it is changed. The bytes
 * of each result are those of its own command.
 */
export function planTogether(branches: readonly Branch[]) {
  const decoding = branches.flatMap((branch) => branch.decoding);
  // Without this option, the settings of one result would apply to the next.
  const parts: Parts = [['-respect-parentheses'], ...planBranches(branches, 0)];
  return { decoding, parts };
}

/** Returns the arguments of the stages from `start` on. The last one is the last result's file. */
function planBranches(branches: readonly Branch[], start: number): Parts {
  const [{ stages: first }] = branches as [Branch];
  const count = first.length;
  const isShared = (at: number): boolean =>
    branches.every(({ stages }) => stages[at]?.text === first[at]?.text);
  let end = start;
  while (end < count && isShared(end)) end += 1;
  const shared = first.slice(start, end).map(({ args }) => labelPrinted(args, branches));
  if (branches.length === 1) return shared;
  const groups = Map.groupBy(branches, ({ stages }) => stages[end]?.text);
  const planned = [...groups.values()].map((group) => planBranches(group, end));
  const last = planned.pop() as Parts;
  return [...shared, ...planned.flatMap((group) => writeCopy(group, end > DECODE_STAGE)), ...last];
}

/** Runs arguments that end in a file on a copy of the image, if it has been read. */
function writeCopy(parts: Parts, isRead: boolean): Parts {
  const copy = isRead ? ['-clone', '0--1'] : [];
  const [last = []] = parts.slice(-1);
  return [['(', ...copy], ...parts.slice(0, -1), [...encoding.writeNow(last), '-delete', '0--1', ')']];
}

/** Starts what the commands print with the suffixes of the results that it is about. */
function labelPrinted(args: readonly string[], branches: readonly Branch[]): string[] {
  const label = `${branches.map(({ suffix }) => suffix).join(' ')}: `;
  return args.map((arg, at) => (args[at - 1] === '-print' ? label + arg : arg));
}

/** Returns what the command printed about the result with a suffix, from all that it printed. */
export function selectPrinted(stdout: string, suffix: string): string {
  return stdout.replace(LABELLED, (_, suffixes: string, text: string) =>
    suffixes.split(' ').includes(suffix) ? text : '',
  );
}

const LABELLED = /^([\da-z]{2}(?: [\da-z]{2})*): (.*\n?)/gm;
