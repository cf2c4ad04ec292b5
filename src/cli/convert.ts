/** @module The `convert` command. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { type ConversionEngine, createConversionEngine } from '../conversion/engine.ts';
import { extrasOf, typesInForce } from '../conversion/extras.ts';
import { storeInput } from '../conversion/input/store.ts';
import { type ConvertOptions, INPUT_FILE } from '../conversion/plan/types.ts';
import { StartupError } from '../errors.ts';
import { sanitizeForDisplay } from '../text.ts';
import {
  abortOnSignals,
  type CliContext,
  CliError,
  createWarningCollector,
  loadSettings,
} from './context.ts';
import { fileErrorFrom, systemReason, toFileError } from './convert/file-errors.ts';
import { findInputs, STDIN } from './convert/inputs.ts';
import { assertCompatible, type Flags, parseOptions } from './convert/options.ts';
import { createReport, type Done, MAX_LABEL_LENGTH, type Report } from './convert/report.ts';
import { type Job, type OutputJob, resolveOutputs, resolveTarget, STDOUT } from './convert/targets.ts';
import { assertWritable, writeOutput } from './convert/write-output.ts';

/** Client key of all conversions. The process has only one client. */
const CLIENT = 'command line';

/**
 * Runs `imagemill convert`: finds the inputs, converts them, and writes the results.
 *
 * @param args files, folders, patterns, or `-`
 * @returns the exit status: 0 if all files were converted, 1 if some were not, 128 or more after a signal
 * @throws {CliError} with status 2, if the arguments are invalid or this machine cannot convert
 */
export async function convert(args: readonly string[], flags: Flags, { env }: CliContext): Promise<number> {
  const config = loadSettings(env);
  const { inputs: types, outputs } = typesInForce(extrasOf(config));
  const { format, options, jobs = config.CONCURRENCY } = parseOptions(flags, outputs);
  const target = await resolveTarget(flags.output, args, format, outputs);
  assertCompatible({ ...options, format: target.format }, outputs);
  const { json = false, quiet = false, force = false } = flags;
  rejectTerminals(args, target.kind === 'stdout', json);

  const stop = abortOnSignals();
  const results = target.kind === 'folder' ? target.path : undefined;
  const inputs = await findInputs(args, results, stop.signal, types);
  const planned = resolveOutputs(inputs, target);
  const { log, warnings } = createWarningCollector();
  // One job more than conversions: one result can be written while `jobs` others are converted.
  const settings = { ...config, CONCURRENCY: jobs, QUEUE_LIMIT: Math.max(1, config.QUEUE_LIMIT) };
  const engine = await createConversionEngine(settings, log).catch((error) => {
    if (!(error instanceof StartupError)) throw error;
    throw new CliError([...warnings, error.message, 'Run "imagemill doctor" to find out why.'].join('\n'), 2);
  });
  try {
    if (!engine.capabilities.outputs.includes(target.format))
      throw new CliError(
        [...warnings, `The tools on this machine cannot write ${target.format}.`].join('\n'),
        2,
      );
    const report = createReport(planned.length, { json, quiet: quiet || target.kind === 'stdout' });
    const convertJob = createJobs({
      ...{ engine, report, force, signal: stop.signal, maxFileBytes: config.MAX_FILE_BYTES },
      options: { ...options, format: target.format },
    });
    await mapConcurrently(planned, jobs + 1, stop.signal, convertJob);
    const failures = report.end();
    return stop.status() || (failures > 0 ? 1 : 0);
  } finally {
    await engine.close();
  }
}

interface JobDeps {
  readonly engine: ConversionEngine;
  readonly options: ConvertOptions;
  readonly maxFileBytes: number;
  readonly force: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Creates the function that converts one file and reports its result or error. */
function createJobs(deps: JobDeps): (job: OutputJob) => Promise<void> {
  const { report, signal } = deps;
  return async (job) => {
    report.starts(job.input);
    try {
      if ('error' in job) throw job.error;
      report.done(job, await convertOne(job, deps));
    } catch (error) {
      if (!signal.aborted) report.failed(job.input, toFileError(error, job.input));
    }
  };
}

async function convertOne({ input, output }: Job, deps: JobDeps): Promise<Done> {
  const { engine, options, maxFileBytes, force, signal } = deps;
  await assertWritable(output, force);
  const { stream, bytes } = await openInput(input);
  addAbortSignal(signal, stream); // a read from standard input may block indefinitely
  try {
    const workspace = await engine.workspaces.open({ bytes: Math.min(bytes ?? maxFileBytes, maxFileBytes) });
    try {
      const folder = await workspace.folder('image');
      const { room } = workspace;
      const label = input === STDIN ? 'Standard input' : sanitizeForDisplay(input, MAX_LABEL_LENGTH);
      const rules = {
        label,
        types: engine.capabilities.inputs,
        maxBytes: () => maxFileBytes,
        signal,
        room,
      };
      const { type, length } = await storeInput(stream, join(folder, INPUT_FILE), rules);
      const result = await engine.convert({ folder, room, type, label, client: CLIENT }, options, signal);
      signal.throwIfAborted();
      await writeOutput(result.path, output, force);
      const ms = Math.round(result.convertedMs);
      const { bytes: bytesAfter, notes, quality } = result;
      return { bytesBefore: length, bytesAfter, ms, notes, ...(quality !== undefined && { quality }) };
    } finally {
      await workspace.remove();
    }
  } finally {
    stream.destroy();
  }
}

interface Input {
  readonly stream: Readable;
  /** Size of the file; undefined for standard input. */
  readonly bytes?: number;
}

async function openInput(input: string): Promise<Input> {
  if (input === STDIN) return { stream: process.stdin };
  try {
    const file = await open(input);
    return { stream: file.createReadStream(), bytes: (await file.stat()).size };
  } catch (error) {
    throw fileErrorFrom(error, 'UNREADABLE', input, systemReason(error));
  }
}

/** Calls `work` for each item, for at most `concurrency` items at a time. */
async function mapConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  const worker = async (): Promise<void> => {
    for (const item of waiting) {
      if (signal.aborted) return;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/**
 * Rejects reading an image from a terminal, and writing one to a terminal.
 *
 * @throws {CliError} with status 2
 */
function rejectTerminals(args: readonly string[], toStdout: boolean, json: boolean): void {
  if (args.includes(STDIN) && process.stdin.isTTY) throw new CliError('Standard input is a terminal.', 2);
  if (!toStdout) return;
  if (process.stdout.isTTY)
    throw new CliError('Standard output is a terminal: use -o with a file or folder.', 2);
  if (json) throw new CliError(`--json and -o ${STDOUT} both write to standard output.`, 2);
}
