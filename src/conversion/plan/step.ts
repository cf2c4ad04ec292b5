/**
 * @module The commands of a plan, as data, and the files that they write. Placeholders stand for
 * what a plan does not depend on: the path of a profile, the number of threads, and the names of
 * files that distinguish the results of one image. Pure.
 */
import type { ImageInfo } from '../../images/image-info.ts';
import type { ToolName } from '../../tables/tools.ts';

/** Command of a plan. File names are relative to the job's folder. */
export interface Step {
  readonly tool: ToolName;
  /** Arguments, with placeholders; see {@link completeStep}. */
  readonly args: readonly string[];
  /** File that the command reads on standard input. */
  readonly stdin?: string | undefined;
  /** File that gets the standard output of the command. */
  readonly stdout?: string | undefined;
  /** Level of zlib for the PNG that the command writes for the next one. */
  readonly deflateLevel?: number | undefined;
  /** PNG that the command renders. Its size was not certain before, so it is checked. */
  readonly rendersTo?: string | undefined;
}

/** Values of the placeholders, known when a command runs. */
export interface StepContext {
  /** Maximum number of threads of a tool. The result is the same for every number. */
  readonly threads: number;
  /** Path of a small sRGB profile. */
  readonly srgbProfile: string;
}

/** Splits a part of a command line at its spaces. */
export const words = (line: string): string[] => line.split(' ');

export const THREADS = '{threads}';
/** The thread option of djxl and cjxl. 0 means that only the main thread runs. */
export const JXL_THREADS = '{JXL threads}';
/** No argument for one thread. */
export const WEBP_THREADS = '{WebP threads}';
/** No argument for one thread. */
export const DWEBP_THREADS = '{dwebp threads}';
export const SRGB_PROFILE = '{sRGB profile}';

const ARGUMENTS: ReadonlyMap<string, (context: StepContext) => readonly string[]> = new Map([
  [THREADS, ({ threads }) => [String(threads)]],
  [JXL_THREADS, ({ threads }) => [`--num_threads=${threads > 1 ? threads : 0}`]],
  [WEBP_THREADS, ({ threads }) => (threads > 1 ? ['-define', 'webp:thread-level=1'] : [])],
  [DWEBP_THREADS, ({ threads }) => (threads > 1 ? ['-mt'] : [])],
  [SRGB_PROFILE, ({ srgbProfile }) => [srgbProfile]],
]);

/** The digits that distinguish the files of one result, in the name of a file. */
export const SUFFIX = '{suffix}';
/** The name of a result without its extension. */
export const OUTPUT = '{output}';

/** PPM that dwebp has decoded at a smaller size. */
export const SCALED_FILE = `scaled${SUFFIX}.ppm`;
/** Start of the names of pdftocairo's PNG files, to which it adds a number and the extension. */
export const PAGE_STEM = `page${SUFFIX}`;
/** Image before encoding, stored for results that are encoded several times. */
export const KEPT_FILE = `kept${SUFFIX}.miff`;
/** A pixel of an image that is only decoded, because ImageMagick has to write a file. */
export const DECODED_PIXEL = 'pixel.miff';
/** PNG that ImageMagick writes for an external encoder. */
export const FILE_TO_ENCODE = `encode${SUFFIX}.png`;

/** Title of a PDF, and name of the only result of an image without its extension. */
export const OUTPUT_STEM = 'image';

/** Returns whether an argument has a placeholder. Few have, and there can be 100 000. */
const hasPlaceholder = (arg: string): boolean => arg.includes('{');

/** Replaces the placeholders in the name of a file, for the result with a suffix. */
export function nameFile(name: string, suffix: string): string {
  if (!hasPlaceholder(name)) return name;
  // The stem of a variant is as long as that of a single result.
  const output = suffix === '' ? OUTPUT_STEM : `var${suffix}`;
  return name.replace(SUFFIX, suffix).replace(OUTPUT, output);
}

/** Replaces all placeholders of a command, for the result with a suffix. */
export function completeStep(step: Step, context: StepContext, suffix: string): Step {
  const args = step.args.flatMap((arg) =>
    hasPlaceholder(arg) ? (ARGUMENTS.get(arg)?.(context) ?? nameFile(arg, suffix)) : arg,
  );
  const { rendersTo, stdout } = step;
  return {
    ...step,
    args,
    rendersTo: rendersTo && nameFile(rendersTo, suffix),
    stdout: stdout && nameFile(stdout, suffix),
  };
}

/** What the files that a command writes depend on, besides its arguments. */
interface WritingJob {
  readonly image: Pick<ImageInfo, 'type' | 'animation'>;
  readonly rasterized: readonly string[] | undefined;
  readonly suffix: string;
}

type Outputs = (args: readonly string[], job: WritingJob) => readonly string[] | undefined;

const last: Outputs = (args) => args.slice(-1);
const afterOption: Outputs = (args) => args.slice(args.lastIndexOf('-o') + 1).slice(0, 1);

/** Files by tool. Undefined for a tool that can write more than its arguments name. */
const OUTPUTS_BY_TOOL: Readonly<Record<ToolName, Outputs>> = {
  magick(args, job) {
    const written = args.filter((_, at) => at === args.length - 1 || args[at - 1] === '-write');
    // Version 7 writes the tags of a TIFF to a file (TIFFSetImageProperties).
    if (job.image.type === 'tiff' && !job.rasterized) return undefined;
    return written.flatMap((arg) => frameFiles(arg.slice(arg.indexOf(':') + 1), job));
  },
  rsvg: afterOption,
  dwebp: afterOption,
  cwebp: afterOption,
  img2webp: afterOption,
  cjxl: last,
  avifenc: last,
  djxl: (args) => args.slice(1, 2),
  // It adds a number to the names of the images of a file that has several.
  heif: () => undefined,
  pngquant: () => [],
  pdfinfo: () => [],
  qpdf: last,
  pdftocairo: (_, { rasterized = [], suffix }) => rasterized.map((name) => nameFile(name, suffix)),
};

/** Number in the name of the file of a frame. */
const FRAME_NUMBER = '%05d';

/** Returns the files that ImageMagick writes for a name: one per frame if it has a number. */
function frameFiles(name: string, { image }: WritingJob): string[] {
  if (!name.includes(FRAME_NUMBER)) return [name];
  const frames = image.animation?.delaysMs ?? [];
  return frames.map((_, at) => name.replace(FRAME_NUMBER, String(at).padStart(5, '0')));
}

/** Returns the only files that a completed command writes; undefined if that depends on the run. */
export const outputsOf = ({ tool, args, stdout }: Step, job: WritingJob): readonly string[] | undefined =>
  stdout ? [stdout] : OUTPUTS_BY_TOOL[tool](args, job);
