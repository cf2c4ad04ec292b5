/**
 * @module The actions of `imagemill regress`. Each returns the exit status: 0, 1 if a result has
 * changed, 128 or more after a signal. Each throws a {@link CliError} if it cannot run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { plural } from '../base/text.ts';
import { TruncatedFileError } from '../client/streamed-file.ts';
import { enabledTypes } from '../conversion/limits/capabilities.ts';
import { createFolders, isReplaceable, replaceFile, systemReason } from '../files/system.ts';
import {
  type Backend,
  createHttpBackend,
  createLocalBackend,
  type SourceImage,
} from '../regress/backends.ts';
import { readBaseline, saveFingerprints, saveResults } from '../regress/baseline.ts';
import { compare } from '../regress/compare.ts';
import { defaultMatrix, RegressError, readMatrix, type TestMatrix, toMatrix } from '../regress/matrix.ts';
import { listImages, type Recording, record } from '../regress/record.ts';
import { HTML_START, htmlReport } from '../regress/report/html.ts';
import {
  formatSummary,
  formatTools,
  JSON_START,
  JUNIT_START,
  jsonReport,
  junitReport,
  summarize,
} from '../regress/report/summary.ts';
import type { Config } from '../tables/config.ts';
import { abortOnSignals, type CliContext, CliError, loadSettings } from './context.ts';
import { createProgress } from './progress.ts';

type Environment = CliContext['env'];

/** The matrix to use, and the presets that it can name. */
interface MatrixFlags {
  readonly matrix?: string;
  readonly presets?: string;
}

interface RecordFlags extends MatrixFlags {
  readonly url?: string;
  readonly repeat: string;
}

export interface ReportFiles extends MatrixFlags {
  readonly report?: string;
  readonly junit?: string;
  readonly json?: string;
}

/** The report of each option, and the text with which every such report starts. */
const REPORTS = [
  { option: 'report', start: HTML_START, format: htmlReport },
  { option: 'junit', start: JUNIT_START, format: junitReport },
  { option: 'json', start: JSON_START, format: jsonReport },
] as const;

/** Runs `regress record`. */
export function recordBaseline(
  folder: string,
  options: RecordFlags & { readonly to: string; readonly fingerprintsOnly?: boolean },
  env: Environment,
): Promise<number> {
  return orCliError(env, async (config, signal) => {
    const { to, fingerprintsOnly = false } = options;
    const matrix = await chooseMatrix(options, config);
    const images = await findImages(folder, to, config);
    const save = fingerprintsOnly ? saveFingerprints : saveResults;
    const recording = await save(to, (folder?: string) =>
      recordImages(images, matrix, options, { config, folder, signal }),
    );
    const failed = recording.rows.filter(({ refused }) => refused).length;
    const failures = failed > 0 ? `, ${failed} of them errors` : '';
    console.log(
      `${plural(images.length, 'image')}, ${plural(recording.rows.length, 'result')}${failures}, with ${formatTools(recording)}: ${to}`,
    );
    return 0;
  });
}

/** Runs `regress check`. */
export function checkImages(
  folder: string,
  options: RecordFlags & ReportFiles & { readonly against: string },
  env: Environment,
): Promise<number> {
  return orCliError(env, async (config, signal) => {
    await checkReports(options);
    const before = await readBaseline(options.against);
    const matrix = await chooseMatrix(options, config, before.matrix);
    const images = await findImages(folder, options.against, config);
    const results = await mkdtemp(join(tmpdir(), 'imagemill-regress-'));
    try {
      const after = await recordImages(images, matrix, options, { config, folder: results, signal });
      return await report(before, after, matrix, options, signal);
    } finally {
      await rm(results, { recursive: true, force: true });
    }
  });
}

/** Runs `regress compare`. */
export function compareBaselines(
  one: string,
  other: string,
  options: ReportFiles,
  env: Environment,
): Promise<number> {
  return orCliError(env, async (config, signal) => {
    await checkReports(options);
    const [before, after] = [await readBaseline(one), await readBaseline(other)];
    const matrix = await chooseMatrix(options, config, before.matrix);
    return report(before, after, matrix, options, signal);
  });
}

/**
 * Reads the matrix of a file. Without one, that of the baseline, or the default with the enabled
 * output formats.
 *
 * @throws {CliError} if there are presets for no matrix
 * @throws {RegressError}
 */
async function chooseMatrix(
  { matrix: path, presets }: MatrixFlags,
  config: Config,
  baseline?: TestMatrix,
): Promise<TestMatrix> {
  if (path) return readMatrix(path, config, presets);
  if (presets !== undefined) throw new CliError('--presets needs --matrix, whose cases name presets.');
  return baseline ?? toMatrix(defaultMatrix(enabledTypes(config).outputs));
}

async function findImages(folder: string, baseline: string, config: Config): Promise<SourceImage[]> {
  const { inputs } = enabledTypes(config);
  const images = await listImages(folder, inputs, baseline).catch((error: NodeJS.ErrnoException) => {
    const message = error.code
      ? `${error.path ?? folder} cannot be read: ${systemReason(error)}`
      : error.message;
    throw new CliError(message);
  });
  if (images.length === 0) throw new CliError(`There are no images in ${folder}.`);
  return images;
}

async function recordImages(
  images: readonly SourceImage[],
  matrix: TestMatrix,
  { url, repeat }: RecordFlags,
  { config, folder, signal }: { config: Config; folder?: string | undefined; signal: AbortSignal },
): Promise<Recording> {
  if (!/^[1-9]\d?$/.test(repeat))
    throw new CliError(`--repeat ${repeat}: expected a whole number from 1 to 99`);
  const converter: Backend = await (url
    ? createHttpBackend(url, config.IMAGEMILL_API_KEY)
    : createLocalBackend(config));
  try {
    return await withProgress((progress) =>
      record({ images, matrix, converter, folder, repeat: Number(repeat), signal, progress }),
    );
  } finally {
    await converter.close();
  }
}

/** Shows a progress bar during an action, which reports each finished image and their number. */
async function withProgress<T>(
  action: (progress: (image: string, all: number) => void) => Promise<T>,
): Promise<T> {
  const bar = createProgress();
  try {
    return await action((image, all) => {
      bar?.setTotal(all);
      bar?.ended(image);
    });
  } finally {
    bar?.end();
  }
}

async function report(
  before: Recording,
  after: Recording,
  matrix: TestMatrix,
  files: ReportFiles,
  signal: AbortSignal,
): Promise<number> {
  const findings = await withProgress((progress) =>
    compare(before, after, matrix, (image, all) => {
      signal.throwIfAborted();
      progress(image, all);
    }),
  );
  const skipped = before.rows.filter((row) => !matrix.thresholds(row.image, row.case)).length;
  if (skipped > 0) console.error(`imagemill: the matrix skips ${skipped} results of the baseline`);
  if (findings.length === 0) throw new CliError('There is nothing to compare: the matrix matches no image.');
  for (const { option, format } of REPORTS) {
    const path = files[option];
    if (path) await write(path, await format(findings, before, after));
  }
  console.log(formatSummary(findings, before, after));
  return summarize(findings).failures > 0 ? 1 : 0;
}

/**
 * Checks that the reports would replace no file, or only earlier reports. Another file can be an
 * image that the user named by mistake.
 *
 * @throws {CliError}
 */
async function checkReports(files: ReportFiles): Promise<void> {
  for (const { option, start } of REPORTS) {
    const path = files[option];
    if (path && !(await isReplaceable(path, start)))
      throw new CliError(`--${option} ${path}: the file exists, and is not a report.`);
  }
}

async function write(path: string, text: string): Promise<void> {
  try {
    await createFolders(dirname(path));
    await replaceFile(path, text);
  } catch (error) {
    throw new CliError(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** Runs an action, and converts its errors to CliError. Status 1 means changed results. */
async function orCliError(
  env: Environment,
  action: (config: Config, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const config = loadSettings(env);
  const abort = abortOnSignals();
  try {
    const status = await action(config, abort.signal);
    return abort.status() || status;
  } catch (error) {
    if (abort.signal.aborted) return abort.status();
    if (error instanceof CliError) throw error;
    const { message, stack } = error as Error;
    const isKnown = error instanceof RegressError || error instanceof TruncatedFileError;
    const isOfSystem = (error as NodeJS.ErrnoException).code !== undefined;
    throw new CliError(isKnown || isOfSystem ? message : (stack ?? message));
  }
}
