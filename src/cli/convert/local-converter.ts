/** @module Converts with the tools of this machine. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import type { Config } from '../../config.ts';
import { type ConversionEngine, createConversionEngine } from '../../conversion/engine.ts';
import { type ConvertOptions, INPUT_FILE } from '../../conversion/plan/types.ts';
import { storeInput } from '../../conversion/store.ts';
import { StartupError } from '../../errors.ts';
import { systemReason } from '../../files/system.ts';
import { CliError, createWarningCollector } from '../context.ts';
import { type Converter, fileErrorFrom, readUnchanged, STDIN, stateOf } from './converter.ts';
import { labelOf } from './report.ts';

/** Client key of all conversions. The process has only one client. */
const CLIENT = 'command line';

/** Options of {@link createLocalConverter}. */
export interface LocalConverterOptions {
  /** Number of concurrent conversions. */
  readonly jobs: number;
  readonly signal: AbortSignal;
}

/**
 * Starts the conversion engine.
 *
 * @throws {CliError} with status 2, if this machine cannot convert to the format
 */
export async function createLocalConverter(
  config: Config,
  options: ConvertOptions,
  { jobs, signal }: LocalConverterOptions,
): Promise<Converter> {
  const { log, warnings } = createWarningCollector();
  const settings = { ...config, CONCURRENCY: jobs, QUEUE_LIMIT: Math.max(1, config.QUEUE_LIMIT) };
  const engine = await createConversionEngine(settings, log).catch((error) => {
    if (!(error instanceof StartupError)) throw error;
    throw new CliError(
      [...warnings.keys(), error.message, 'Run "imagemill doctor" to find out why.'].join('\n'),
      2,
    );
  });
  if (!engine.capabilities.outputs.includes(options.format)) {
    await engine.close();
    throw new CliError(
      [...warnings.keys(), `The tools on this machine cannot write ${options.format}.`].join('\n'),
      2,
    );
  }
  return {
    toolVersions: versionsOf(engine),
    convert: (input, use, known) =>
      convertFile(engine, input, { options, signal, maxBytes: config.MAX_FILE_BYTES, known }, use),
    close: () => engine.close(),
  };
}

function versionsOf({ toolchain }: ConversionEngine): string {
  const versions = Object.entries(toolchain).flatMap(([name, tool]) =>
    tool ? `${name} ${tool.version}` : [],
  );
  return versions.sort().join(', ');
}

interface ConversionLimits {
  readonly options: ConvertOptions;
  readonly signal: AbortSignal;
  /** Maximum size of a source in bytes. */
  readonly maxBytes: number;
  /** Key of the result that exists. */
  readonly known: string | undefined;
}

async function convertFile(
  engine: ConversionEngine,
  input: string,
  { options, signal, maxBytes, known }: ConversionLimits,
  use: Parameters<Converter['convert']>[1],
): Promise<void> {
  const before = await stateOf(input);
  const stream = await openInput(input);
  addAbortSignal(signal, stream); // a read from standard input may block indefinitely
  try {
    await engine.workspaces.use({ bytes: Math.min(before?.size ?? 0, maxBytes) }, async (workspace) => {
      const folder = await workspace.folder('image');
      const { disk } = workspace;
      const label = labelOf(input);
      const rules = { label, types: engine.capabilities.inputs, maxBytes: () => maxBytes, signal, disk };
      const { type, length } = await readUnchanged(input, before, () =>
        storeInput(stream, join(folder, INPUT_FILE), rules),
      );
      const knows = (key: string): boolean => key === known;
      const source = { folder, disk, type, label, client: CLIENT, knows };
      const result = await engine.convert(source, options, signal);
      signal.throwIfAborted();
      const { path, key, bytes, convertedMs, notes, quality } = result;
      await use({
        path,
        key,
        source: before,
        bytesBefore: length,
        bytesAfter: bytes,
        ms: Math.round(convertedMs),
        notes,
        ...(quality !== undefined && { quality }),
      });
    });
  } finally {
    stream.destroy();
  }
}

async function openInput(input: string): Promise<Readable> {
  if (input === STDIN) return process.stdin;
  try {
    return (await open(input)).createReadStream();
  } catch (error) {
    throw fileErrorFrom(error, 'UNREADABLE', input, systemReason(error));
  }
}
