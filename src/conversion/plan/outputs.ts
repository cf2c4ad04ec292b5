/** @module The files that the command of a plan writes, from its arguments. Pure. */
import type { ToolName } from '../../tools.ts';
import { nameFile, type Step } from './step.ts';
import type { ConversionJob } from './types.ts';

type Outputs = (args: readonly string[], job: ConversionJob) => readonly string[] | undefined;

const last: Outputs = (args) => args.slice(-1);
const afterOption: Outputs = (args) => args.slice(args.lastIndexOf('-o') + 1).slice(0, 1);

/** Files by tool. Undefined for a tool that can write more than its arguments name. */
const OUTPUTS_BY_TOOL: Readonly<Record<ToolName, Outputs>> = {
  magick(args, job) {
    const written = args.filter((_, at) => at === args.length - 1 || args[at - 1] === '-write');
    // It writes each page of a PDF to a temporary file first, and the tags of a TIFF (TIFFSetImageProperties of version 7).
    const readsTiff = job.image.type === 'tiff' && !job.rasterized;
    if (readsTiff || written.some((arg) => arg.startsWith('PDF:'))) return undefined;
    return written.flatMap((arg) => frameFiles(arg.slice(arg.indexOf(':') + 1), job));
  },
  rsvg: afterOption,
  dwebp: afterOption,
  img2webp: afterOption,
  cjxl: last,
  avifenc: last,
  djxl: (args) => args.slice(1, 2),
  // It adds a number to the names of the images of a file that has several.
  heif: () => undefined,
  pdfinfo: () => [],
  pdftocairo: (_, { rasterized = [], suffix }) => rasterized.map((name) => nameFile(name, suffix)),
};

/** Number in the name of the file of a frame. */
const FRAME_NUMBER = '%05d';

/** Returns the names of the files that ImageMagick writes for this name, one for each frame if it has a place for a number. */
function frameFiles(name: string, { image }: ConversionJob): string[] {
  if (!name.includes(FRAME_NUMBER)) return [name];
  const frames = image.animation?.delaysMs ?? [];
  return frames.map((_, at) => name.replace(FRAME_NUMBER, String(at).padStart(5, '0')));
}

/**
 * Returns the names of the only files that a command writes, or undefined if they are not known before it runs.
 *
 * @param step a command without placeholders
 */
export const outputsOf = ({ tool, args }: Step, job: ConversionJob): readonly string[] | undefined =>
  OUTPUTS_BY_TOOL[tool](args, job);
