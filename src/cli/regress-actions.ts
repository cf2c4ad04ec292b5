import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BaselineError, moveIn, readBaseline, roomForBaseline, writeBaseline } from '../regress/baseline.ts';
import { compare } from '../regress/compare.ts';
import { byMill } from '../regress/converters/by-mill.ts';
import { byServer } from '../regress/converters/by-server.ts';
import { type Converter, type Image, NoConverter } from '../regress/converters/converter.ts';
import { DEFAULT_MATRIX, type Matrix, MatrixError, readMatrix, toMatrix } from '../regress/matrix.ts';
import { imagesIn, record } from '../regress/record.ts';
import type { Recording } from '../regress/recording.ts';
import { htmlReport } from '../regress/report/html.ts';
import { jsonReport } from '../regress/report/json.ts';
import { junitReport } from '../regress/report/junit.ts';
import { inWords, summaryOf, toolsInWords } from '../regress/summary.ts';
import { settingsOf } from './settings.ts';
import { stopOnSignals } from './signals.ts';
import { Refused, type Surroundings } from './surroundings.ts';

/** What the commands of `imagemill regress` do. Each gives the exit status: 0, 1 when something changed, 128 and more when a signal ended it. */

type Environment = Surroundings['env'];

interface ConvertFlags {
  readonly matrix?: string;
  readonly url?: string;
  readonly repeat: string;
}

export interface ReportFiles {
  readonly matrix?: string;
  readonly report?: string;
  readonly junit?: string;
  readonly json?: string;
}

/** Something was asked for that cannot be done, as shells and most programs have it. */
const COULD_NOT = 2;

/** @throws Refused with status 2 when it cannot be done */
export function recordBaseline(
  folder: string,
  options: ConvertFlags & { readonly to: string; readonly figuresOnly?: boolean },
  env: Environment,
): Promise<number> {
  return orRefused(async (signal) => {
    const { to, figuresOnly = false } = options;
    const matrix = options.matrix ? await readMatrix(options.matrix) : toMatrix(DEFAULT_MATRIX);
    const images = await imagesOf(folder, to);
    const room = figuresOnly ? undefined : await roomForBaseline(to);
    let recording: Recording;
    try {
      recording = await converted(images, matrix, options, { env, folder: room, signal });
      if (room) await moveIn(to, room);
    } finally {
      if (room) await rm(room, { recursive: true, force: true });
    }
    await writeBaseline(to, recording, !figuresOnly);
    const failed = recording.rows.filter(({ refused }) => refused).length;
    const refused = failed > 0 ? `, ${failed} of them refused` : '';
    console.log(
      `${images.length} images, ${recording.rows.length} results${refused}, by ${toolsInWords(recording)}: ${to}`,
    );
    return 0;
  });
}

/** @throws Refused with status 2 when it cannot be done */
export function checkImages(
  folder: string,
  options: ConvertFlags & ReportFiles & { readonly against: string },
  env: Environment,
): Promise<number> {
  return orRefused(async (signal) => {
    const before = await readBaseline(options.against);
    const matrix = options.matrix ? await readMatrix(options.matrix) : before.matrix;
    const images = await imagesOf(folder, options.against);
    const results = await mkdtemp(join(tmpdir(), 'imagemill-regress-'));
    try {
      const after = await converted(images, matrix, options, { env, folder: results, signal });
      return await tell(before, after, matrix, options, signal);
    } finally {
      await rm(results, { recursive: true, force: true });
    }
  });
}

/** @throws Refused with status 2 when it cannot be done */
export function compareBaselines(one: string, other: string, options: ReportFiles): Promise<number> {
  return orRefused(async (signal) => {
    const [before, after] = [await readBaseline(one), await readBaseline(other)];
    const matrix = options.matrix ? await readMatrix(options.matrix) : before.matrix;
    return tell(before, after, matrix, options, signal);
  });
}

async function imagesOf(folder: string, baseline: string): Promise<Image[]> {
  const images = await imagesIn(folder, baseline).catch((error: Error) => {
    throw new Refused(error.message, COULD_NOT);
  });
  if (images.length === 0) throw new Refused(`${folder} has no images`, COULD_NOT);
  return images;
}

async function converted(
  images: readonly Image[],
  matrix: Matrix,
  { url, repeat }: ConvertFlags,
  { env, folder, signal }: { env: Environment; folder: string | undefined; signal: AbortSignal },
): Promise<Recording> {
  if (!/^[1-9]\d?$/.test(repeat)) throw new Refused(`--repeat ${repeat}: expected 1 to 99`, COULD_NOT);
  const converter: Converter = await (url ? byServer(url) : byMill(settingsOf(env)));
  const progress = progressOf('converted');
  try {
    return await record({ images, matrix, converter, folder, repeat: Number(repeat), signal, progress });
  } finally {
    await converter.close();
  }
}

async function tell(
  before: Recording,
  after: Recording,
  matrix: Matrix,
  files: ReportFiles,
  signal: AbortSignal,
): Promise<number> {
  const progress = progressOf('compared');
  const findings = await compare(before, after, matrix, (done, all) => {
    signal.throwIfAborted();
    progress(done, all);
  });
  const passedOver = before.rows.filter((row) => !matrix.thresholds(row.image, row.case)).length;
  if (passedOver > 0)
    console.error(`imagemill: ${passedOver} results of the baseline were passed over, as the matrix has it`);
  if (findings.length === 0)
    throw new Refused('There is nothing to compare: the matrix fits no image', COULD_NOT);
  if (files.report) await write(files.report, await htmlReport(findings, before, after));
  if (files.junit) await write(files.junit, junitReport(findings, before, after));
  if (files.json) await write(files.json, jsonReport(findings, before, after));
  console.log(inWords(findings, before, after));
  return summaryOf(findings).failures > 0 ? 1 : 0;
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** On a terminal, a line that counts. */
function progressOf(what: string): (done: number, all: number) => void {
  if (!process.stderr.isTTY) return () => {};
  return (done, all) => process.stderr.write(`\r${what} ${done} of ${all}${done === all ? '\n' : ''}`);
}

const EXPECTED = [MatrixError, BaselineError, NoConverter];

/** What stands in the way of an answer ends with 2, never with the 1 of a change. */
async function orRefused(action: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = stopOnSignals();
  try {
    const status = await action(stop.signal);
    return stop.status() || status;
  } catch (error) {
    if (stop.signal.aborted) return stop.status();
    if (error instanceof Refused) throw error;
    const { message, stack } = error as Error;
    const known = EXPECTED.some((kind) => error instanceof kind) || (error as NodeJS.ErrnoException).code;
    throw new Refused(known ? message : (stack ?? message), COULD_NOT);
  }
}
