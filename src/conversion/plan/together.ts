/**
 * @module One command of ImageMagick that writes several results of one image. Results share the steps that are the same for them:
 * reading the file, rotating it, resizing it. Where their steps begin to differ, each gets a copy of the image. A copy shares its
 * pixels until it is changed. Pure.
 */
import { DECODE_STAGE, magickStages } from './index.ts';
import { nameFile, type Step } from './step.ts';
import type { ConversionJob, PlannedJob } from './types.ts';

/** The arguments of each stage of a result. */
interface Branch {
  readonly result: number;
  readonly stages: readonly (readonly string[])[];
}

/** Returns whether one command of ImageMagick can write all results. Each drawing of an SVG has its own size. */
export function canShare(jobs: readonly ConversionJob[]): boolean {
  return jobs.length > 1 && jobs.every(({ image, isTranscoded }) => image.type !== 'svg' && !isTranscoded);
}

/** Plans the command, and those that decode for it. The bytes of each result are those of its own command. */
export function planTogether(jobs: readonly PlannedJob[]): Step[] {
  const decoding = jobs.flatMap(({ plan, programs, suffix }) =>
    plan.steps
      .slice(0, programs.indexOf('magick'))
      .map((step) => ({ ...step, args: step.args.map((arg) => nameFile(arg, suffix)) })),
  );
  const branches = jobs.map((job, result) => ({
    result,
    stages: magickStages(job).map((stage) => stage.map((arg) => nameFile(arg, job.suffix))),
  }));
  // Without this option, the settings of one result would apply to the next.
  return [...decoding, { tool: 'magick', args: ['-respect-parentheses', ...planBranches(branches, 0)] }];
}

/** Returns the arguments of the stages from `start` on. The last argument is the file of the last result. */
function planBranches(branches: readonly Branch[], start: number): string[] {
  const [{ stages: first }] = branches as [Branch];
  const count = first.length;
  const isShared = (at: number): boolean =>
    branches.every(({ stages }) => sameArguments(stages[at] ?? [], first[at] ?? []));
  let end = start;
  while (end < count && isShared(end)) end += 1;
  const shared = first
    .slice(start, end)
    .flatMap((stage, at) => (start + at === DECODE_STAGE ? [...stage, ...printResults(branches)] : stage));
  const groups = Map.groupBy(branches, ({ stages }) => (stages[end] ?? []).join('\0'));
  if (branches.length === 1) return shared;
  const isRead = end > DECODE_STAGE;
  const planned = [...groups.values()].map((group) => [
    ...(isRead ? printResults(group) : []),
    ...planBranches(group, end),
  ]);
  const last = planned.pop() as string[];
  return [...shared, ...planned.flatMap((group) => writeCopy(group, isRead)), ...last];
}

function sameArguments(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((argument, at) => argument === other[at]);
}

/** Runs arguments that end in a file on a copy of the image, if it has been read. */
function writeCopy(args: readonly string[], isRead: boolean): string[] {
  const copy = isRead ? ['-clone', '0--1'] : [];
  return ['(', ...copy, ...args.slice(0, -1), '-write', ...args.slice(-1), '-delete', '0--1', ')'];
}

/** Prints which results the following output is about. */
function printResults(branches: readonly Branch[]): string[] {
  return ['-print', `results: ${branches.map(({ result }) => result).join(' ')}\\n`];
}

const RESULTS = /^results: ([\d ]+)\n/gm;

/** Returns what the command printed about one of the results, from everything that it printed. */
export function selectPrinted(stdout: string, result: number): string {
  const [common = '', ...sections] = stdout.split(RESULTS);
  const texts = sections.filter(
    (_, at) => at % 2 === 1 && sections[at - 1]?.split(' ').includes(String(result)),
  );
  return common + texts.join('');
}
