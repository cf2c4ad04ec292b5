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
import { type Flags, parseOptions } from './convert/options.ts';
import { createReport, type Done, MAX_LABEL_LENGTH, type Report } from './convert/report.ts';
import { type Job, type OutputJob, resolveOutputs, resolveTarget, STDOUT } from './convert/targets.ts';
import { assertWritable, writeOutput } from './convert/write-output.ts';

/** `imagemill convert`: words → files → the mill → results in their places. */

/** Nobody else's images are worked on by this process. */
const CLIENT = 'command line';

/**
 * @param words files, folders, patterns, or `-`
 * @returns the exit status: 0 when all were converted, 1 when some were not, 128 and more when a signal ended it
 * @throws Refused, with status 2, when the command makes no sense or nothing can be converted here
 */
export async function convert(words: readonly string[], flags: Flags, { env }: CliContext): Promise<number> {
  const config = loadSettings(env);
  const { inputs: types, outputs } = typesInForce(extrasOf(config));
  const { format, options, jobs = config.CONCURRENCY } = parseOptions(flags, outputs);
  const target = await resolveTarget(flags.output, words, format, outputs);
  const { json = false, quiet = false, force = false } = flags;
  refuseTerminals(words, target.kind === 'stdout', json);

  const stop = abortOnSignals();
  const results = target.kind === 'folder' ? target.path : undefined;
  const inputs = await findInputs(words, results, stop.signal, types);
  const planned = resolveOutputs(inputs, target);
  const { log, warnings } = createWarningCollector();
  // One more is under way than converts, so that a result is put in its place meanwhile.
  const settings = { ...config, CONCURRENCY: jobs, QUEUE_LIMIT: Math.max(1, config.QUEUE_LIMIT) };
  const mill = await createConversionEngine(settings, log).catch((error) => {
    if (!(error instanceof StartupError)) throw error;
    throw new CliError([...warnings, error.message, 'See "imagemill doctor".'].join('\n'), 2);
  });
  try {
    if (!mill.capabilities.outputs.includes(target.format))
      throw new CliError([...warnings, `Nothing here can write ${target.format}.`].join('\n'), 2);
    const report = createReport(planned.length, { json, quiet: quiet || target.kind === 'stdout' });
    const convertJob = createJobs({
      ...{ mill, report, force, signal: stop.signal, maxFileBytes: config.MAX_FILE_BYTES },
      options: { ...options, format: target.format },
    });
    await mapConcurrently(planned, jobs + 1, stop.signal, convertJob);
    const failures = report.end();
    return stop.status() || (failures > 0 ? 1 : 0);
  } finally {
    await mill.close();
  }
}

interface JobDeps {
  readonly mill: ConversionEngine;
  readonly options: ConvertOptions;
  readonly maxFileBytes: number;
  readonly force: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Makes the function that takes care of one file, whatever becomes of it. */
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
  const { mill, options, maxFileBytes, force, signal } = deps;
  await assertWritable(output, force);
  const { stream, bytes } = await openInput(input);
  addAbortSignal(signal, stream); // nobody knows when standard input has its next byte
  try {
    const workspace = await mill.workspaces.open({ bytes: Math.min(bytes ?? maxFileBytes, maxFileBytes) });
    try {
      const folder = await workspace.folder('image');
      const { room } = workspace;
      const label = input === STDIN ? 'Standard input' : sanitizeForDisplay(input, MAX_LABEL_LENGTH);
      const rules = {
        label,
        types: mill.capabilities.inputs,
        maxBytes: () => maxFileBytes,
        signal,
        room,
      };
      const { type, length } = await storeInput(stream, join(folder, INPUT_FILE), rules);
      const result = await mill.convert({ folder, room, type, label, client: CLIENT }, options, signal);
      signal.throwIfAborted();
      await writeOutput(result.path, output, force);
      const ms = Math.round(result.convertedMs);
      return { bytesBefore: length, bytesAfter: result.bytes, ms, notes: result.notes };
    } finally {
      await workspace.remove();
    }
  } finally {
    stream.destroy();
  }
}

interface Input {
  readonly stream: Readable;
  /** As many as it says that it has. */
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

/** So many at once, each as soon as there is a place for it. */
async function mapConcurrently<T>(
  items: readonly T[],
  lanes: number,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  const lane = async (): Promise<void> => {
    for (const item of waiting) {
      if (signal.aborted) return;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** An image on a terminal helps nobody, and nobody types one. */
function refuseTerminals(words: readonly string[], toStdout: boolean, json: boolean): void {
  if (words.includes(STDIN) && process.stdin.isTTY) throw new CliError('Standard input is a terminal.', 2);
  if (!toStdout) return;
  if (process.stdout.isTTY)
    throw new CliError('Standard output is a terminal: -o names a file or folder.', 2);
  if (json) throw new CliError(`--json and -o ${STDOUT} both write to standard output.`, 2);
}
