/** @module The `convert` command. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DEFAULT_PATTERN, namesInputOnly, namesNumber } from '../base/name-pattern.ts';
import { naturalOrder, plural, sanitizeForDisplay } from '../base/text.ts';
import type { Variant } from '../conversion/context.ts';
import { withWatermark } from '../conversion/input/watermark-image.ts';
import { enabledTypes } from '../conversion/limits/capabilities.ts';
import { realPathOf } from '../files/system.ts';
import { findUnverifiable } from '../regress/verifiable.ts';
import { FRAME_DELAY_MS, type OutputType } from '../tables/formats.ts';
import {
  abortOnSignals,
  type CliContext,
  CliError,
  exitNow,
  type LocalSettings,
  loadLocalSettings,
  loadSettings,
} from './context.ts';
import { type BulkOptions, parseBulkOptions } from './convert/bulk-options.ts';
import { combineInputs } from './convert/combine-inputs.ts';
import { convertInputs, exitSoonAfter } from './convert/convert-all.ts';
import { type Converter, STDIN, StopError, startOnDemand } from './convert/converter.ts';
import {
  assertSmallest,
  type Flags,
  parseOptions,
  parseResults,
  toCombinedParts,
  toFormFields,
} from './convert/flags.ts';
import { createInputs, type Inputs } from './convert/inputs.ts';
import { createLocalConverter } from './convert/local-converter.ts';
import { type Destination, resolveDestination, STDOUT } from './convert/output.ts';
import { createRemoteConverter } from './convert/remote-converter.ts';
import { createCsvReport, createReport, type Report } from './convert/report.ts';
import { openResultFolder, type ResultFolder } from './convert/result-folder.ts';

export interface ConvertFlags extends Flags {
  readonly output: string;
  /** Whether the output is the last argument. It can be one of several files listed by a shell. */
  readonly isLast?: boolean;
}

/**
 * Runs `imagemill convert`: finds the inputs, converts them, and writes the results.
 *
 * @param args files, folders, patterns, or `-`
 * @returns the exit status: 0 if all files were converted, 1 if some were not, 128 or more after a
 *   signal
 * @throws {CliError} if the arguments are invalid or this machine cannot convert
 */
export async function convert(
  args: readonly string[],
  flags: ConvertFlags,
  { env, version }: CliContext,
): Promise<number> {
  const command = await parseCommand(args, flags, env);
  const { config, bulk, destination, verify, results, timing } = command;
  const stop = abortOnSignals();
  const { signal } = stop;
  const outputFolder = destination.kind === 'folder' ? destination.path : undefined;
  const compare = namesNumber(bulk.pattern) || destination.combine ? naturalOrder() : undefined; // as on the page
  const inputs = await createInputs(args, outputFolder, signal, command.types, compare);
  await assertInputs(inputs, bulk, destination);
  const report = await openReport(flags, command, inputs);
  const converter = startOnDemand(() => createConverter(command, report.notice, signal));
  const writing = new Set<Promise<void>>();
  const explain = exitSoonAfter(stop, {
    writing,
    async explain() {
      const ended = report.end();
      explainStop(report, bulk, inputs);
      await ended;
    },
    exit: exitNow,
  });
  let resultFolder: ResultFolder | undefined;
  try {
    const { path, combine } = destination;
    if (bulk.update)
      resultFolder = await openResultFolder(
        combine ? dirname(path) : path,
        bulk,
        config,
        converter,
        version,
        verify?.mode,
      );
    if (!resultFolder && !bulk.dryRun) await converter.start(); // report missing tools before anything else
    const started = { inputs, report, resultFolder, converter: converter.start, signal, writing };
    const run = { ...started, flags, destination, results, bulk, jobs: command.jobs };
    const { options } = results[0] as Variant;
    const ended = combine ? combineInputs({ ...run, options, timing }) : convertInputs(run);
    await ended.catch((error) => {
      if (!(error instanceof StopError)) throw error;
      report.stopped(error.message);
    });
    const isComplete = await report.end();
    return stop.status() || (isComplete ? 0 : 1);
  } finally {
    await converter.close();
    await resultFolder?.index.close().catch(() => {}); // the next run removes it
    if (signal.aborted) await explain();
  }
}

type Command = Awaited<ReturnType<typeof parseCommand>>;

/** @throws {CliError} if the arguments are invalid */
async function parseCommand(args: readonly string[], flags: ConvertFlags, env: CliContext['env']) {
  const config: LocalSettings = flags.url ? loadSettings(env) : loadLocalSettings(env, flags);
  const { inputs: types, outputs } = enabledTypes(config);
  const given = parseOptions(flags, outputs);
  const bulk = parseBulkOptions(flags);
  const hasNames = bulk.pattern !== DEFAULT_PATTERN;
  const combine = flags.combine ? 'yes' : flags.isLast ? 'no' : 'implied';
  const destination = await resolveDestination(flags.output, args, given.format, outputs, hasNames, combine);
  const rules = { format: destination.format, types, outputs, config };
  const { watermark, ...wanted } = await parseResults(flags, given.options, rules);
  // With them, --update finds results with another watermark.
  const all = wanted.results.map((result) => ({
    ...result,
    options: withWatermark(result.options, watermark),
  }));
  if (all.some(({ options }) => options.smallest)) assertSmallest(flags);
  assertOutput(args, all, destination, flags.json ?? false);
  const results = destination.combine ? toCombinedParts(all, flags, outputs) : all;
  if (!destination.combine && (flags.delay ?? flags.loop) !== undefined)
    throw new CliError('--delay and --loop are for the frames of one file of several images (--combine).');
  const formats = results.map(({ options }) => options.format);
  return {
    config,
    types,
    bulk,
    destination,
    results,
    formats,
    watermark,
    /** Form fields of a request with `--url`. */
    fields: toFormFields(flags, formats[0] as OutputType),
    timing: {
      delayMs: given.delay ?? wanted.timing?.delayMs ?? FRAME_DELAY_MS.default,
      loopCount: given.loop ?? wanted.timing?.loopCount ?? 0,
    },
    jobs: given.jobs ?? config.CONCURRENCY,
    verify: await parseVerify(flags, results),
  };
}

/** @throws {CliError} if the file of `--report` cannot be written */
async function openReport(
  { json = false, quiet = false, verbose = false, report: path }: ConvertFlags,
  { bulk: { dryRun, update, pattern }, destination, results, verify }: Command,
  { areMany }: Inputs,
): Promise<Report> {
  const csv = path === undefined || verify?.pictures ? undefined : await createCsvReport(path);
  const isQuiet = quiet || destination.kind === 'stdout';
  const countsExisting = areMany && !destination.combine && !update && !verbose;
  const canUpdate = namesInputOnly(pattern) && !results.some(({ options }) => options.smallest);
  const shown = { verbose: verbose || !areMany, countsExisting, canUpdate };
  return createReport({ json, quiet: isQuiet, ...shown, dryRun, csv });
}

function createConverter(
  { config, bulk: { urls }, fields, formats, jobs, watermark, verify }: Command,
  notice: Report['notice'],
  signal: AbortSignal,
): Promise<Converter> {
  return urls.length > 0
    ? createRemoteConverter({ config, urls, fields, watermark: watermark?.path, notice, signal })
    : createLocalConverter(config, formats, { jobs, signal, watermark, verify });
}

/**
 * Parses `--verify`. With it, a folder as `--report` receives pictures of the worst places.
 *
 * @throws {CliError} if results with these options cannot be verified
 */
async function parseVerify({ verify: mode, report, url }: Flags, results: readonly Variant[]) {
  if (mode === undefined) return undefined;
  if (mode !== 'pixels' && mode !== 'visual')
    throw new CliError(`Invalid --verify "${sanitizeForDisplay(mode)}": expected pixels or visual.`);
  if (url) throw new CliError('--verify needs the tools of this machine, without --url.');
  const why = results.map(({ options }) => findUnverifiable(mode, options)).find(Boolean);
  if (why) throw new CliError(`--verify ${mode} is not possible: ${why}.`);
  const isFolder = report?.endsWith('/') || (await stat(report ?? '').catch(() => undefined))?.isDirectory();
  return { mode, pictures: isFolder ? report : undefined } as const;
}

/** Prints how to convert the remaining files after a signal. */
function explainStop(report: Report, { update, watch }: BulkOptions, { areMany }: Inputs): void {
  if (!areMany || watch) return;
  const { converted } = report.counts;
  const rest = update
    ? 'The same command converts the rest.'
    : 'The same command converts the rest, and reports these files as existing. With --update from the start, it would skip them.';
  report.notice(`Stopped after ${plural(converted, 'file')}. ${rest}`);
}

/** @throws {CliError} if `-o` cannot take the results, or a terminal is to be read or written */
function assertOutput(
  args: readonly string[],
  results: readonly Variant[],
  { kind, path }: Destination,
  json: boolean,
): void {
  if (kind !== 'folder' && results.length > 1) {
    const what = `and there are ${results.length} of each file`;
    throw new CliError(`-o ${path} takes one result, ${what}: a folder ends with a slash.`);
  }
  if (args.includes(STDIN) && process.stdin.isTTY) throw new CliError('Standard input is a terminal.');
  if (kind !== 'stdout') return;
  if (process.stdout.isTTY)
    throw new CliError('Standard output is a terminal: use -o with a file or folder.');
  if (json) throw new CliError(`--json and -o ${STDOUT} both write to standard output.`);
}

/** @throws {CliError} if the inputs do not fit the options and the output */
async function assertInputs(
  inputs: Inputs,
  { update, delete: deletes, watch, pattern }: BulkOptions,
  { kind, path, combine }: Destination,
): Promise<void> {
  if (pattern !== DEFAULT_PATTERN && kind !== 'folder')
    throw new CliError('--name needs a folder for -o: with a file, -o is its name.');
  if (update && kind !== 'folder' && !(combine && kind === 'file'))
    throw new CliError('--update, --delete and --watch need a folder for -o.');
  if (watch && !inputs.areFolders) throw new CliError('--watch needs folders as inputs.');
  if (deletes && inputs.roots.length === 0) throw new CliError('--delete needs a folder among the inputs.');
  if (kind === 'folder') {
    const output = await realPathOf(path);
    const own = inputs.roots.find(({ real }) => real === output);
    if (!own) return;
    const why = 'its results would be the sources of the next run';
    throw new CliError(`${own.path} is also the output folder: ${why}. Choose another -o, or one inside it.`);
  }
  if (!inputs.areMany || combine) return;
  let count = 0;
  for await (const input of inputs.find()) if (!('notice' in input)) count += 1;
  if (count > 1) throw new CliError(`-o ${path} takes one result, and there are ${count} inputs.`);
}
