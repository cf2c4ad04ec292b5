/** @module The action of `imagemill regress watch`: sends files to two servers, and compares the results while it runs. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { TruncatedFileError } from '../client/streamed-file.ts';
import { systemReason } from '../files/system.ts';
import { ALL_INPUT_TYPES } from '../formats.ts';
import { type Backend, createHttpBackend, type Image } from '../regress/backends.ts';
import { compare } from '../regress/compare.ts';
import { RegressError, type TestMatrix } from '../regress/matrix.ts';
import { forEachItem, type Recording, record } from '../regress/record.ts';
import { countVerdicts, formatCounts, formatFinding, formatTools } from '../regress/report/summary.ts';
import { bySeverity, type Finding, isFailure } from '../regress/verdict.ts';
import { plural, sanitizeForDisplay } from '../text.ts';
import { type CliContext, CliError } from './context.ts';
import { STDIN } from './convert/converter.ts';
import { createInputs } from './convert/inputs.ts';
import { createProgress } from './convert/progress.ts';
import { chooseMatrix, type MatrixFlags, orCliError } from './regress-actions.ts';

export interface WatchFlags extends MatrixFlags {
  readonly service: string;
  readonly candidate: string;
  readonly min: string;
  readonly maxChanged: string;
  readonly json?: boolean;
}

/** The two servers, and how to compare their results. */
interface WatchRun {
  readonly backends: readonly [service: Backend, candidate: Backend];
  readonly matrix: TestMatrix;
  /** Folder for the results of one file at a time for each worker. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Runs `regress watch`.
 *
 * @param source a folder, or `-` for paths on standard input, one a line
 * @returns the exit status: 0 if the gate holds, 1 if it does not, 128 or more after a signal
 * @throws {CliError} if it cannot run
 */
export function watchServices(source: string, flags: WatchFlags, env: CliContext['env']): Promise<number> {
  return orCliError(env, async (config, signal) => {
    const gate = { min: toCount('--min', flags.min), maxChanged: toCount('--max-changed', flags.maxChanged) };
    const matrix = await chooseMatrix(flags, config);
    const isFolder = source === STDIN || (await stat(source).catch(() => undefined))?.isDirectory();
    if (!isFolder) throw new CliError(`${source} is not a folder.`);
    if (source === STDIN && process.stdin.isTTY) throw new CliError('Standard input is a terminal.');
    const { IMAGEMILL_API_KEY: key } = config;
    const backends = [
      await createHttpBackend(flags.service, key),
      await createHttpBackend(flags.candidate, key),
    ] as const;
    const report = createWatchReport(backends, gate, flags.json ?? false);
    const folder = await mkdtemp(join(tmpdir(), 'imagemill-regress-'));
    try {
      if (report.progress && source !== STDIN)
        void countImages(source, signal).then(report.progress.setTotal, () => {});
      await compareAll(source, { backends, matrix, folder, signal }, report);
    } finally {
      report.progress?.end();
      await rm(folder, { recursive: true, force: true });
    }
    return report.summarize() ? 0 : 1;
  });
}

function toCount(option: string, value: string): number {
  if (/^\d{1,12}$/.test(value)) return Number(value);
  throw new CliError(`${option} ${value}: expected a whole number`);
}

/**
 * Yields the images of a folder, or those that standard input names. Memory does not grow with their number.
 *
 * @param onUnreadable called with the path and the reason
 */
async function* findImages(
  source: string,
  signal: AbortSignal,
  onUnreadable: (path: string, reason: string) => void,
): AsyncGenerator<Image> {
  const args = source === STDIN ? createInterface({ input: process.stdin, signal }) : [source];
  for await (const arg of args) {
    if (arg === '') continue;
    const inputs = await createInputs([arg], undefined, signal, ALL_INPUT_TYPES);
    for await (const input of inputs.find()) {
      if ('notice' in input) continue;
      const { path } = input;
      if ('error' in input) onUnreadable(path, input.error.message);
      // The name is part of the path of the results, so that it must not lead out of their folder.
      else yield { name: source === STDIN ? resolve(path) : relative(source, path), path };
    }
  }
}

/** Counts the images for the progress bar, while others are converted. */
async function countImages(source: string, signal: AbortSignal): Promise<number> {
  let total = 0;
  const count = () => {
    total += 1;
  };
  for await (const _ of findImages(source, signal, count)) count();
  return total;
}

/**
 * Compares the results of all images, as many at a time as a server gets requests.
 *
 * @throws {RegressError} if a server fails
 */
async function compareAll(source: string, run: WatchRun, report: WatchReport): Promise<void> {
  const [{ concurrency }] = run.backends;
  const find = (signal: AbortSignal) => findImages(source, signal, report.unreadable);
  await forEachItem(find, concurrency, run.signal, async (image, signal) => {
    const { name, path } = image;
    report.progress?.starts(name);
    try {
      report.compared(name, await compareImage(image, { ...run, signal }));
    } catch (error) {
      if (error instanceof RegressError)
        throw new RegressError(`${path}: ${error.message}`, { cause: error });
      if (!isUnreadable(error as Error, image)) throw error;
      report.unreadable(name, `${path} cannot be read: ${systemReason(error)}`);
    }
  });
}

/** Returns whether an error concerns the image, which can disappear during the run, and not the disk of the results. */
const isUnreadable = (error: NodeJS.ErrnoException, { path }: Image): boolean =>
  error instanceof TruncatedFileError || error.path === path;

async function compareImage(
  image: Image,
  { backends, matrix, folder, signal }: WatchRun,
): Promise<Finding[]> {
  const results = await mkdtemp(join(folder, 'file-'));
  const recordOn = (backend: Backend, side: string): Promise<Recording> =>
    record({
      images: [image],
      matrix,
      converter: { ...backend, concurrency: 1 },
      folder: join(results, side),
      signal,
    });
  try {
    const before = await recordOn(backends[0], 'before');
    const after = await recordOn(backends[1], 'after');
    return await compare(before, after, matrix);
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}

type WatchReport = ReturnType<typeof createWatchReport>;

/** Creates a report that prints each changed result when it is found, and keeps only numbers. */
function createWatchReport(
  [service, candidate]: WatchRun['backends'],
  gate: { readonly min: number; readonly maxChanged: number },
  json: boolean,
) {
  const progress = createProgress('changed');
  /** Files by the worst verdict on their results. */
  const verdicts = { ...countVerdicts([]) };
  const counts = { files: 0, changed: 0, rejected: 0, unreadable: 0 };
  const print = (text: string, value?: object): void => {
    progress?.clear();
    if (!json) console.log(text);
    else if (value) console.log(JSON.stringify(value));
  };
  return {
    progress,
    /** Counts a file that was compared. */
    compared(name: string, findings: readonly Finding[]): void {
      const [worst] = bySeverity(findings);
      const failures = findings.filter(isFailure);
      if (failures.length > 0) progress?.failed(name);
      else progress?.ended(name);
      if (!worst) return; // the matrix skips this image
      for (const one of failures) {
        const { image, case: testCase, verdict, reasons } = one;
        print(formatFinding(one), { image, case: testCase, verdict, reasons });
      }
      counts.files += 1;
      counts.changed += failures.length > 0 ? 1 : 0;
      counts.rejected += findings.every(({ before, after }) => before?.refused && after?.refused) ? 1 : 0;
      verdicts[worst.verdict] += 1;
    },
    /** Counts a file that could not be read, and names it. */
    unreadable(name: string, reason: string): void {
      progress?.clear();
      console.error(`imagemill: ${sanitizeForDisplay(reason, 1000)}`);
      counts.unreadable += 1;
      progress?.ended(name);
    },
    /** Prints the summary. @returns whether the gate holds */
    summarize(): boolean {
      // Files that both servers reject prove nothing: a server that needs a key would reject all.
      const converted = counts.files - counts.rejected;
      const holds = converted >= gate.min && counts.changed <= gate.maxChanged;
      const tools = [service.tools, candidate.tools];
      const lines = [
        `before: ${formatTools(service)}`,
        `after:  ${formatTools(candidate)}`,
        `${plural(counts.files, 'file')}:`,
        ...formatCounts(verdicts),
        ...(counts.rejected > 0 ? [`${plural(counts.rejected, 'file')} rejected by both servers`] : []),
        ...(counts.unreadable > 0 ? [`${plural(counts.unreadable, 'file')} not readable`] : []),
        `The gate ${holds ? 'holds' : 'does not hold'}: ${converted} converted, minimum ${gate.min}; ${counts.changed} changed, maximum ${gate.maxChanged}.`,
      ];
      print(lines.join('\n'), {
        summary: { holds, converted, ...counts, ...gate, verdicts, service: tools[0], candidate: tools[1] },
      });
      return holds;
    },
  };
}
