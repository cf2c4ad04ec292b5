/**
 * @module A backend that uses the tools of this machine as the service does: sandboxed, in fork servers.
 */
import { copyFile, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import type { Config } from '../../config.ts';
import { type ConversionEngine, createConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE, type Step } from '../../conversion/plan/types.ts';
import type { ConversionInput } from '../../conversion/types.ts';
import { ServiceError, StartupError } from '../../errors.ts';
import { ALL_INPUT_TYPES, type InputType } from '../../formats.ts';
import { DETECTION_BYTES, detectFileType } from '../../images/index.ts';
import { shellWords } from '../../text.ts';
import { TOOLS, type ToolName } from '../../tools.ts';
import type { Case } from '../matrix.ts';
import { type Attempt, type Backend, BackendError, type Image, type Refusal } from './backend.ts';

/** Client name of all images. */
const CLIENT = 'regress';

/**
 * Creates a backend that converts in this process.
 *
 * @throws {BackendError} if this machine cannot convert
 */
export async function createLocalBackend(config: Config): Promise<Backend> {
  const log = pino({ level: 'error' }, pino.destination(2));
  const engine = await createConversionEngine(config, log).catch((error) => {
    throw error instanceof StartupError ? new BackendError(error.message, { cause: error }) : error;
  });
  const tools = Object.entries(engine.toolchain).flatMap(([name, tool]) =>
    tool ? [[TOOLS[name as ToolName].project, tool.version] as const] : [],
  );
  return {
    tools: Object.fromEntries(tools),
    concurrency: config.CONCURRENCY,
    convert: (image, testCase, signal) => convertImage(engine, image, testCase, signal),
    close: () => engine.close(),
  };
}

async function convertImage(
  engine: ConversionEngine,
  image: Image,
  testCase: Case,
  signal: AbortSignal,
): Promise<Attempt> {
  const type = await detectImageType(image.path);
  const { inputs, outputs } = engine.capabilities;
  if (!type || !inputs.includes(type) || !outputs.includes(testCase.options.format))
    return { refused: { status: 415, message: 'It is not an image of a supported format.' }, commands: [] };
  const workspace = await engine.workspaces.open();
  const steps: Step[] = [];
  const run = async (name: string, more: Pick<ConversionInput, 'readsMisread' | 'onCommand'>) => {
    const folder = await workspace.folder(name);
    await copyFile(image.path, join(folder, INPUT_FILE));
    const source = { folder, type, label: 'The file', client: CLIENT, ...more };
    return engine.convert(source, testCase.options, signal);
  };
  try {
    const { path, convertedMs, notes } = await run('file', { onCommand: (step) => steps.push(step) });
    return {
      made: { bytes: await readFile(path), ms: Math.round(convertedMs), notes },
      commands: formatCommands(engine, steps),
    };
  } catch (error) {
    signal.throwIfAborted();
    const misread = isUnreadable(error)
      ? await run('misread', { readsMisread: true }).then(
          ({ path }) => readFile(path),
          () => undefined,
        )
      : undefined;
    signal.throwIfAborted();
    return { refused: toRefusal(error), misread, commands: formatCommands(engine, steps) };
  } finally {
    await workspace.remove();
  }
}

const isUnreadable = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === 'UNSUPPORTED_ENCODING';

function toRefusal(error: unknown): Refusal {
  if (error instanceof ServiceError) return { status: error.status, message: error.message };
  throw error;
}

/** Detects the type of an image by its content, also behind a long preamble; undefined if it is not a supported image. */
export async function detectImageType(path: string): Promise<InputType | undefined> {
  const type = await detectFileType(path, DETECTION_BYTES * 16);
  return ALL_INPUT_TYPES.find((one) => one === type);
}

/** Formats the commands of a conversion, with file names relative to its folder. */
function formatCommands({ toolchain }: ConversionEngine, steps: readonly Step[]): string[] {
  return steps.map(({ tool, args, stdin }) => {
    const argv = [basename(toolchain[tool]?.path ?? tool), ...args.map(shortenAssetPath)];
    return shellWords(argv) + (stdin === undefined ? '' : ` < ${stdin}`);
  });
}

/** Makes the paths of imagemill's own assets relative to the repository. */
function shortenAssetPath(argument: string): string {
  return argument.startsWith('/') ? argument.replace(/^.*\/(?=assets\/)/, '') : argument;
}
