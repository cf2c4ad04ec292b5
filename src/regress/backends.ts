/** @module What converts the images of a recording: the tools of this machine, or a server. */
import { copyFile, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import { formatCurl } from '../base/shell.ts';
import { ImagemillError } from '../client/library/index.ts';
import { createServiceClient, type ServiceClient, UnavailableError } from '../client/service-client.ts';
import { type ConversionEngine, createConversionEngine } from '../conversion/engine.ts';
import { formatCommands } from '../conversion/explain.ts';
import type { Step } from '../conversion/plan/step.ts';
import { INPUT_FILE } from '../conversion/plan/types.ts';
import { DETECTION_BYTES, detectFileType } from '../images/index.ts';
import { installedTools } from '../process/toolchain.ts';
import type { Config } from '../tables/config.ts';
import { ServiceError, StartupError } from '../tables/errors.ts';
import { ALL_INPUT_TYPES, type InputType } from '../tables/formats.ts';
import { TOOLS } from '../tables/tools.ts';
import { type Case, RegressError } from './matrix.ts';

export interface SourceImage {
  /** Path relative to the folder of images, with slashes. */
  readonly name: string;
  readonly path: string;
}

export type BackendResult = {
  /** Shell commands that repeat the conversion, one per line. */
  readonly commands: readonly string[];
} & (
  | {
      /** The result, and its conversion time in ms, without the time in the queue. */
      readonly made: { readonly bytes: Buffer; readonly ms: number; readonly notes: readonly string[] };
    }
  | {
      /** HTTP status and message, as the service would respond. */
      readonly refused: { readonly status: number; readonly message: string };
    }
);

/** Converts images: the engine in this process, or a server. */
export interface Backend {
  /** Versions of the tools, or the address and version of a server, by name. */
  readonly tools: Readonly<Record<string, string>>;
  readonly concurrency: number;
  /**
   * @throws {RegressError} if the backend is unavailable
   * @throws the signal's reason if it aborts
   */
  convert(image: SourceImage, testCase: Case, signal: AbortSignal): Promise<BackendResult>;
  close(): Promise<void>;
}

function toRegressError(error: unknown): never {
  if (error instanceof UnavailableError || error instanceof StartupError)
    throw new RegressError(error.message, { cause: error });
  throw error;
}

const HTTP_CONCURRENCY = 2;
/** A server that does not answer ends the run: that is no result of the image. */
const MAX_FAILURES = 1;

/**
 * Creates a backend that sends images to a server.
 *
 * @param url URL of the server, with or without /api/v1
 * @throws {RegressError} if no imagemill server responds
 */
export async function createHttpBackend(url: string, key: string | undefined): Promise<Backend> {
  const client = await createServiceClient([url], { maxFailures: MAX_FAILURES, key }).catch(toRegressError);
  const [{ base, version }] = client.instances as [ServiceClient['instances'][number]];
  return {
    tools: { server: base, imagemill: version },
    concurrency: HTTP_CONCURRENCY,
    async convert(image, testCase, signal) {
      const { fields, options } = testCase;
      const output = ['-o', `${testCase.name}.${options.format}`];
      const form = { fields, fileField: 'file', files: [image.name] } as const;
      const commands = [formatCurl({ url: `${base}/convert`, output, ...form })];
      const request = { path: image.path, name: basename(image.name), fields };
      const receive = async (response: Response) => Buffer.from(await response.arrayBuffer());
      try {
        const { received: bytes, ms, notes } = await client.convert(request, receive, signal);
        return { made: { bytes, ms, notes }, commands };
      } catch (error) {
        if (!(error instanceof ImagemillError)) return toRegressError(error);
        return { refused: { status: error.status, message: error.message }, commands };
      }
    },
    async close() {},
  };
}

const CLIENT = 'regress';

/**
 * Creates a backend that converts in this process: sandboxed, in fork servers.
 *
 * @throws {RegressError} if this machine cannot convert
 */
export async function createLocalBackend(config: Config): Promise<Backend> {
  const log = pino({ level: 'error' }, pino.destination(2));
  const engine = await createConversionEngine(config, log).catch(toRegressError);
  const tools = installedTools(engine.toolchain);
  return {
    tools: Object.fromEntries(tools.map(({ name, version }) => [TOOLS[name].project, version])),
    concurrency: config.CONCURRENCY,
    convert: (image, testCase, signal) => convertImage(engine, image, testCase, signal),
    close: () => engine.close(),
  };
}

async function convertImage(
  engine: ConversionEngine,
  image: SourceImage,
  testCase: Case,
  signal: AbortSignal,
): Promise<BackendResult> {
  const type = await detectImageType(image.path);
  const { inputs, outputs } = engine.capabilities;
  const { format } = testCase.options;
  const refuse = (message: string): BackendResult => ({ refused: { status: 415, message }, commands: [] });
  if (!type || !inputs.includes(type)) return refuse('It is not an image of a supported format.');
  if (!outputs.includes(format))
    return refuse(
      `The format ${format} is not available: EXTRA_OUTPUTS does not enable it, or its tools are missing.`,
    );
  const steps: Step[] = [];
  const onCommand = (step: Step) => steps.push(step);
  try {
    return await engine.workspaces.use({}, async (workspace) => {
      const folder = await workspace.folder('file');
      await copyFile(image.path, join(folder, INPUT_FILE));
      const source = { folder, type, label: 'The file', client: CLIENT, onCommand };
      const { path, convertedMs, notes } = await engine.convert(source, testCase.options, signal);
      const made = { bytes: await readFile(path), ms: Math.round(convertedMs), notes };
      return { made, commands: formatSteps(engine, steps) };
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    const { status, message } = error;
    return { refused: { status, message }, commands: formatSteps(engine, steps) };
  }
}

/** Detects the type of an image, also behind a long preamble; undefined if not supported. */
export async function detectImageType(path: string): Promise<InputType | undefined> {
  const type = await detectFileType(path, DETECTION_BYTES * 16);
  return ALL_INPUT_TYPES.find((one) => one === type);
}

/** Formats the commands of a conversion, without the folders of this machine. */
function formatSteps({ toolchain }: ConversionEngine, steps: readonly Step[]): string[] {
  const short = steps.map((step) => ({ ...step, args: step.args.map(shortenAssetPath) }));
  return formatCommands(short, (tool) => basename(toolchain[tool]?.path ?? tool));
}

/** Makes the paths of imagemill's own assets relative to the repository. */
const shortenAssetPath = (argument: string): string => argument.replace(/^(?=\/).*\/(?=assets\/)/, '');
