import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { type ConvertOptions, INPUT_FILE } from '../convert/plan/types.ts';
import { takeIn } from '../convert/take-in.ts';
import { createMill, type Mill } from '../mill.ts';
import { printable } from '../printable.ts';
import { Unusable } from '../unusable.ts';
import { findInputs, STDIN } from './convert/inputs.ts';
import { checkFree, place } from './convert/place.ts';
import { createReport, type Done, MOST_LETTERS, type Report } from './convert/report.ts';
import { type Job, type Planned, planJobs, STDOUT, targetOf } from './convert/targets.ts';
import { systemReason, troubleBecause, troubleOf } from './convert/troubles.ts';
import { type Flags, wishesOf } from './convert/wishes.ts';
import { sentenceLog } from './log.ts';
import { settingsOf } from './settings.ts';
import { stopOnSignals } from './signals.ts';
import { Refused, type Surroundings } from './surroundings.ts';

/** `imagemill convert`: words → files → the mill → results in their places. */

/** Nobody else's images are worked on by this process. */
const CLIENT = 'command line';

/**
 * @param words files, folders, patterns, or `-`
 * @returns the exit status: 0 when all were converted, 1 when some were not, 128 and more when a signal ended it
 * @throws Refused, with status 2, when the command makes no sense or nothing can be converted here
 */
export async function convert(
  words: readonly string[],
  flags: Flags,
  { env }: Surroundings,
): Promise<number> {
  const config = settingsOf(env);
  const { format, options, jobs = config.CONCURRENCY } = wishesOf(flags);
  const target = await targetOf(flags.output, words, format);
  const { json = false, quiet = false, force = false } = flags;
  refuseTerminals(words, target.kind === 'stdout', json);

  const stop = stopOnSignals();
  const results = target.kind === 'folder' ? target.path : undefined;
  const inputs = await findInputs(words, results, stop.signal);
  const planned = planJobs(inputs, target);
  const { log, warnings } = sentenceLog();
  // One more is under way than converts, so that a result is put in its place meanwhile.
  const settings = { ...config, CONCURRENCY: jobs, QUEUE_LIMIT: Math.max(1, config.QUEUE_LIMIT) };
  const mill = await createMill(settings, log).catch((error) => {
    if (!(error instanceof Unusable)) throw error;
    throw new Refused([...warnings, error.message, 'See "imagemill doctor".'].join('\n'), 2);
  });
  try {
    if (!mill.capabilities.outputs.includes(target.format))
      throw new Refused([...warnings, `Nothing here can write ${target.format}.`].join('\n'), 2);
    const report = createReport(planned.length, { json, quiet: quiet || target.kind === 'stdout' });
    const convertJob = createJobs({
      ...{ mill, report, force, signal: stop.signal, maxFileBytes: config.MAX_FILE_BYTES },
      options: { ...options, format: target.format },
    });
    await inLanes(planned, jobs + 1, stop.signal, convertJob);
    const failures = report.end();
    return stop.status() || (failures > 0 ? 1 : 0);
  } finally {
    await mill.close();
  }
}

interface JobDeps {
  readonly mill: Mill;
  readonly options: ConvertOptions;
  readonly maxFileBytes: number;
  readonly force: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Makes the function that takes care of one file, whatever becomes of it. */
function createJobs(deps: JobDeps): (job: Planned) => Promise<void> {
  const { report, signal } = deps;
  return async (job) => {
    report.starts(job.input);
    try {
      if ('error' in job) throw job.error;
      report.done(job, await convertOne(job, deps));
    } catch (error) {
      if (!signal.aborted) report.failed(job.input, troubleOf(error, job.input));
    }
  };
}

async function convertOne({ input, output }: Job, deps: JobDeps): Promise<Done> {
  const { mill, options, maxFileBytes, force, signal } = deps;
  await checkFree(output, force);
  const { stream, bytes } = await openInput(input);
  addAbortSignal(signal, stream); // nobody knows when standard input has its next byte
  try {
    const workspace = await mill.workspaces.open({ bytes: Math.min(bytes ?? maxFileBytes, maxFileBytes) });
    try {
      const folder = await workspace.folder('image');
      const { room } = workspace;
      const label = input === STDIN ? 'Standard input' : printable(input, MOST_LETTERS);
      const rules = {
        label,
        types: mill.capabilities.inputs,
        most: () => maxFileBytes,
        halted: signal,
        room,
      };
      const { type, length } = await takeIn(stream, join(folder, INPUT_FILE), rules);
      const result = await mill.convert({ folder, room, type, label, client: CLIENT }, options, signal);
      signal.throwIfAborted();
      await place(result.path, output, force);
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
    throw troubleBecause(error, 'UNREADABLE', input, systemReason(error));
  }
}

/** So many at once, each as soon as there is a place for it. */
async function inLanes<T>(
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
  if (words.includes(STDIN) && process.stdin.isTTY) throw new Refused('Standard input is a terminal.', 2);
  if (!toStdout) return;
  if (process.stdout.isTTY) throw new Refused('Standard output is a terminal: -o names a file or folder.', 2);
  if (json) throw new Refused(`--json and -o ${STDOUT} both write to standard output.`, 2);
}
