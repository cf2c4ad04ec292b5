import { copyFile, open, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import type { Config } from '../../config.ts';
import { type ConversionEngine, createConversionEngine } from '../../conversion/engine.ts';
import { DETECTION_BYTES, detectType } from '../../conversion/input/detect.ts';
import { INPUT_FILE, type Step } from '../../conversion/plan/types.ts';
import { ServiceError, StartupError } from '../../errors.ts';
import { ALL_INPUT_TYPES, type InputType } from '../../formats.ts';
import type { Toolchain } from '../../process/toolchain.ts';
import type { Case } from '../matrix.ts';
import { type Attempt, type Backend, BackendError, type Image, type Refusal } from './backend.ts';
import { shellWords } from './shell.ts';

/** Converts here, by the tools of this machine, as the service does: shut in, by warm workers where there are any. */

/** All images are of one client, so that a worker may do one after the other. */
const CLIENT = 'regress';

const NAMES: Readonly<Record<keyof Toolchain, string>> = {
  magick: 'ImageMagick',
  rsvg: 'librsvg',
  heif: 'libheif',
  img2webp: 'libwebp',
  djxl: 'libjxl',
  cjxl: 'libjxl',
  avifenc: 'libavif',
};

/** @throws NoConverter when this machine cannot convert */
export async function createLocalBackend(config: Config): Promise<Backend> {
  const log = pino({ level: 'error' }, pino.destination(2));
  const mill = await createConversionEngine(config, log).catch((error) => {
    throw error instanceof StartupError ? new BackendError(error.message, { cause: error }) : error;
  });
  const tools = Object.entries(mill.toolchain).flatMap(([name, tool]) =>
    tool ? [[NAMES[name as keyof Toolchain], tool.version] as const] : [],
  );
  return {
    tools: Object.fromEntries(tools),
    concurrency: config.CONCURRENCY,
    convert: (image, how, signal) => convertOne(mill, image, how, signal),
    close: () => mill.close(),
  };
}

async function convertOne(
  mill: ConversionEngine,
  image: Image,
  how: Case,
  signal: AbortSignal,
): Promise<Attempt> {
  const type = await typeOf(image.path);
  const { inputs, outputs } = mill.capabilities;
  if (!type || !inputs.includes(type) || !outputs.includes(how.options.format))
    return { refused: { status: 415, message: 'It is not an image of a supported format.' }, commands: [] };
  const workspace = await mill.workspaces.open();
  const steps: Step[] = [];
  try {
    const folder = await workspace.folder('file');
    await copyFile(image.path, join(folder, INPUT_FILE));
    const source = {
      folder,
      type,
      label: 'The file',
      client: CLIENT,
      onStep: (step: Step) => steps.push(step),
    };
    const { path, convertedMs, notes } = await mill.convert(source, how.options, signal);
    return {
      made: { bytes: await readFile(path), ms: Math.round(convertedMs), notes },
      commands: commandsOf(mill, steps),
    };
  } catch (error) {
    signal.throwIfAborted();
    return { refused: refusal(error), commands: commandsOf(mill, steps) };
  } finally {
    await workspace.remove();
  }
}

function refusal(error: unknown): Refusal {
  if (error instanceof ServiceError) return { status: error.status, message: error.message };
  throw error;
}

/** What a file is; nothing when it is no image of ours. */
export async function typeOf(path: string): Promise<InputType | undefined> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(DETECTION_BYTES * 16),
      0,
      DETECTION_BYTES * 16,
      0,
    );
    const type = await detectType(buffer.subarray(0, bytesRead), bytesRead < buffer.length);
    return ALL_INPUT_TYPES.find((one) => one === type);
  } finally {
    await file.close();
  }
}

/** What was run, with names as they are beside the file. */
function commandsOf({ toolchain }: ConversionEngine, steps: readonly Step[]): string[] {
  return steps.map(({ tool, args, stdin }) => {
    const words = [basename(toolchain[tool]?.path ?? tool), ...args.map(relative)];
    return shellWords(words) + (stdin === undefined ? '' : ` < ${stdin}`);
  });
}

/** Our own files are named from the top of the checkout. */
function relative(argument: string): string {
  return argument.startsWith('/') ? argument.replace(/^.*\/(?=assets\/)/, '') : argument;
}
