/** @module Converts with the tools of this machine. */
import { constants } from 'node:fs';
import { copyFile, open } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { sanitizeForDisplay, toSafeJson } from '../../base/text.ts';
import type { ConversionInput, WatermarkFile } from '../../conversion/context.ts';
import { createConversionEngine } from '../../conversion/engine.ts';
import { storeInput } from '../../conversion/input/store.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import { isInMemory, workingFolder } from '../../files/system.ts';
import { Workspaces } from '../../files/workspace.ts';
import { installedTools } from '../../process/toolchain.ts';
import type { Verification, VerifyMode } from '../../regress/verifiable.ts';
import { isDiskFull, KnownResultError, StartupError, serviceError } from '../../tables/errors.ts';
import type { InputType, OutputType } from '../../tables/formats.ts';
import {
  abortOnSignals,
  CliError,
  createWarningCollector,
  findDecoders,
  type LocalSettings,
} from '../context.ts';
import {
  type Converter,
  labelOf,
  MAX_LABEL_LENGTH,
  readUnchanged,
  type SourceState,
  STDIN,
  stateOf,
  toFileError,
  unreadable,
} from './converter.ts';
import { createInputs } from './inputs.ts';
import { createVerifier } from './verifier.ts';

/** Key by which the queue distinguishes clients. This process has only one. */
const CLIENT = 'command line';

export interface LocalConverterOptions {
  readonly jobs: number;
  readonly signal: AbortSignal;
  readonly watermark?: WatermarkFile | undefined;
  /** How results are verified, and the folder for pictures of the largest differences. */
  readonly verify?: { readonly mode: VerifyMode; readonly pictures: string | undefined } | undefined;
}

/** @throws {CliError} if this machine cannot convert to one of the formats, or cannot verify */
export async function createLocalConverter(
  config: LocalSettings,
  formats: readonly OutputType[],
  { jobs, signal, watermark, verify }: LocalConverterOptions,
): Promise<Converter> {
  if (verify) findDecoders('--verify');
  const { engine, memory, warnings, withStoredInput } = await startEngine(config, signal, jobs);
  const missing = formats.find((format) => !engine.capabilities.outputs.includes(format));
  if (missing) {
    await engine.close();
    throw new CliError([...warnings, `The tools on this machine cannot write ${missing}.`].join('\n'));
  }
  const toolVersions = installedTools(engine.toolchain).map(({ name, version }) => `${name} ${version}`);
  const verifier = verify && (await createVerifier(engine, jobs, verify.pictures, await memory?.root()));
  return {
    toolVersions: toolVersions.sort().join(', '),
    convert: ({ input, output, options }, use, known) =>
      withStoredInput(input, async (source, bytesBefore, sourceState) => {
        const { folder, type } = source;
        const sourceCopy = `${folder}.source`; // the conversion changes and removes the file in the folder
        if (verify) await copyFile(join(folder, INPUT_FILE), sourceCopy, constants.COPYFILE_FICLONE);
        const knows = (key: string): boolean => key === known;
        const result = await engine.convert({ ...source, watermark, knows }, options, signal);
        signal.throwIfAborted();
        const { path, bytes: bytesAfter, convertedMs, quality = options.quality } = result;
        const used = { ...options, quality };
        const verification =
          result.isTranscoded && verify?.mode === 'pixels'
            ? RESTORED
            : verify &&
              (await verifier?.verify(
                { mode: verify.mode, type, source: sourceCopy, result: path, options: used },
                { input, output },
              ));
        const ms = Math.round(convertedMs);
        await use({ ...result, sourceState, bytesBefore, bytesAfter, ms, verification });
      }),
    async keyOf({ input, options }) {
      let key: string | undefined;
      await withStoredInput(input, async (source) => {
        const known = { ...source, watermark, knows: () => true };
        await engine.convert(known, options, signal).catch((error) => {
          if (!(error instanceof KnownResultError)) throw error;
          key = error.key;
        });
      });
      return key;
    },
    combining: (work) =>
      engine.workspaces.use({}, async (workspace) => {
        let kept = 0;
        await work({
          async keep({ path: from, bytesAfter: bytes, key = '' }) {
            kept += 1;
            const path = join(workspace.path, `${kept}${extname(from)}`);
            await copyFile(from, path, constants.COPYFILE_FICLONE);
            return { path, bytes, key };
          },
          async combine(parts, combination) {
            const folder = await workspace.folder('combined');
            return engine.combine(parts, combination, { folder, client: CLIENT, signal });
          },
        });
      }),
    async close() {
      verifier?.close();
      await engine.close();
    },
  };
}

/** Verification of a result from which djxl has restored the JPEG during the conversion. */
const RESTORED: Verification = { mode: 'pixels', passed: true, decoder: 'djxl', max: 0 };

/** Uses a stored file, with its size in bytes and the state of the source before it was read. */
type UseInput = (source: ConversionInput, bytes: number, state: SourceState | undefined) => Promise<void>;

/** Maximum size of a file that is stored in memory, and of what its conversion writes, in bytes. */
const MAX_IN_MEMORY = 64 * 1024 ** 2;

/** Opens a folder in memory for small files, unless a setting names one or memory is scarce. */
function openMemory({ hasWorkingFolder }: LocalSettings, jobs: number): Workspaces | undefined {
  const folder = workingFolder(2 * jobs * MAX_IN_MEMORY);
  return hasWorkingFolder || !isInMemory(folder) ? undefined : new Workspaces(folder);
}

/** Limits the working files of one file to what {@link openMemory} expects. */
function limitMemory(disk: DiskAccount): DiskAccount {
  const assertFits = (bytes: number): void => {
    if (bytes > MAX_IN_MEMORY) throw serviceError('DISK_FULL');
  };
  let stored = 0;
  return {
    ...disk,
    async store(more) {
      stored += more;
      assertFits(stored);
      await disk.store(more);
    },
    async reserve(most) {
      assertFits(most);
      return disk.reserve(most);
    },
  };
}

/** @throws {CliError} if nothing can be converted */
async function startEngine(config: LocalSettings, signal: AbortSignal, jobs = config.CONCURRENCY) {
  const { log, warnings } = createWarningCollector();
  const settings = { ...config, CONCURRENCY: jobs, QUEUE_LIMIT: Math.max(1, config.QUEUE_LIMIT) };
  const { cacheFolder } = config;
  const engine = await createConversionEngine(settings, log, {}, { cacheFolder }).catch((error) => {
    if (!(error instanceof StartupError)) throw error;
    const lines = [...warnings.keys(), error.message, 'Run "imagemill doctor" to find out why.'];
    throw new CliError(lines.join('\n'));
  });
  const memory = openMemory(config, jobs);
  const close = (): Promise<void> => engine.close().finally(() => memory?.close());
  return {
    engine: { ...engine, close },
    memory,
    warnings: [...warnings.keys()],
    /**
     * Copies a file to a private folder, and calls `use` with the copy, which exists until `use`
     * returns. The folder is in memory, or on the disk if that turns out to be too small: then,
     * `use` is called again.
     *
     * @param input path, or {@link STDIN}
     * @throws {ServiceError} or {FileError} if the file cannot be read, or has none of the types
     */
    async withStoredInput(
      input: string,
      use: UseInput,
      types: readonly InputType[] = engine.capabilities.inputs,
    ): Promise<void> {
      const before = await stateOf(input);
      const store = async (workspaces: Workspaces): Promise<void> => {
        const stream = await openInput(input);
        stream.on('error', () => {}); // the signal can abort before anything reads the stream
        addAbortSignal(signal, stream); // a read from standard input may block indefinitely
        const maxBytes = config.MAX_FILE_BYTES;
        try {
          await workspaces.use({ bytes: Math.min(before?.size ?? 0, maxBytes) }, async (workspace) => {
            const folder = await workspace.folder('image');
            const disk = workspaces === memory ? limitMemory(workspace.disk) : workspace.disk;
            const label = labelOf(input);
            const rules = { label, types, maxBytes: () => maxBytes, signal, disk };
            const { type, length, sha256 } = await readUnchanged(input, before, () =>
              storeInput(stream, join(folder, INPUT_FILE), rules),
            );
            await use({ folder, disk, type, sha256, label, client: CLIENT }, length, before);
          });
        } finally {
          stream.destroy();
        }
      };
      if (!memory || !before || before.size > MAX_IN_MEMORY) return store(engine.workspaces);
      await store(memory).catch((error) => {
        if (!isDiskFull(error) && toFileError(error, input).code !== 'DISK_FULL') throw error;
        return store(engine.workspaces);
      });
    },
  };
}

/** The engine of {@link startEngine}, and the signal that ends the command. */
type LocalEngine = Awaited<ReturnType<typeof startEngine>> & { readonly signal: AbortSignal };

/**
 * Starts the engine, and calls `work` with the path of each file. Prints why a file has failed, and
 * continues with the next.
 *
 * @param jsonName name of the file in the JSON object that is printed for a failure; undefined for
 *   a message
 * @returns the exit status: 0, 1 if a file has failed, 128 or more after a signal
 * @throws {CliError} if nothing can be converted
 */
export async function forEachFile(
  args: readonly string[],
  types: readonly InputType[],
  config: LocalSettings,
  work: (path: string, local: LocalEngine) => Promise<void>,
  jsonName?: string,
): Promise<number> {
  const { signal, status } = abortOnSignals();
  const local = { ...(await startEngine(config, signal)), signal };
  let failed = false;
  try {
    const inputs = await createInputs(args, undefined, signal, types);
    for await (const input of inputs.find()) {
      const { path } = input;
      try {
        if ('notice' in input) printError(input.notice);
        else if ('error' in input) throw input.error;
        else await work(path, local);
      } catch (cause) {
        if (signal.aborted) break;
        failed = true;
        const { code, message } = toFileError(cause, path);
        if (jsonName) console.log(toSafeJson({ [jsonName]: path, error: { code, message } }));
        else printError(message);
      }
    }
  } finally {
    await local.engine.close();
  }
  return status() || Number(failed);
}

const printError = (text: string): void =>
  console.error(`imagemill: ${sanitizeForDisplay(text, MAX_LABEL_LENGTH)}`);

async function openInput(input: string): Promise<Readable> {
  if (input === STDIN) return process.stdin;
  const file = await open(input).catch((error) => {
    throw unreadable(error, input);
  });
  return file.createReadStream();
}
