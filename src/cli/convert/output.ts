/** @module Determines the paths of the results, and writes the results atomically. */
import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { chmod, copyFile, link, lstat, open, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fillPattern, type NameParts, namesSize } from '../../base/name-pattern.ts';
import { baseNameOf, caseKey, createUniqueNamer, portableName } from '../../base/text.ts';
import type { Variant } from '../../conversion/context.ts';
import type { WantedFormat } from '../../conversion/request/checks.ts';
import { createFolders, isInside, realPathOf, systemReason } from '../../files/system.ts';
import { isDiskFull } from '../../tables/errors.ts';
import { COMBINED_TYPES, explainDisabled, OUTPUT_NAMES, type OutputType } from '../../tables/formats.ts';
import { CliError } from '../context.ts';
import type { BulkOptions } from './bulk-options.ts';
import { type FileError, fileError, type OutputJob, STDIN } from './converter.ts';
import { type Input, type InputError, OWN_PREFIX, resultKey, type Skipped } from './find-images.ts';
import { type Inputs, matchesMany } from './inputs.ts';

/** Value of `-o` for standard output. */
export const STDOUT = '-';

export interface Destination {
  readonly kind: 'file' | 'folder' | 'stdout';
  readonly path: string;
  /** Format of `--format` or of the extension; undefined without both. */
  readonly format: WantedFormat | undefined;
  readonly combine: boolean;
}

export type PlannedOutput = OutputJob | InputError | Skipped;

/**
 * Resolves `-o`. It is a folder if that folder exists, if it ends with a slash, or if there may be
 * several results.
 *
 * @param format value of `--format`, if given
 * @param hasNames whether `--name` names the results, which is for folders
 * @param combine whether all inputs become one file: `yes` with `--combine`, `implied` by several
 *   inputs and one file of a format that can combine them, or `no`, as for a file that `-o` does
 *   not name
 * @throws {CliError} if the arguments contradict each other
 */
export async function resolveDestination(
  output: string,
  args: readonly string[],
  format: WantedFormat | undefined,
  outputs: readonly OutputType[],
  hasNames: boolean,
  combine: 'yes' | 'implied' | 'no',
): Promise<Destination> {
  const wantsOne = combine === 'yes';
  // A variable of the shell that is not set would mean the current folder.
  if (output === '')
    throw new CliError('-o is empty: name a file or a folder, or use - for standard output.');
  if (output === STDOUT) return { kind: 'stdout', path: output, format, combine: wantsOne };
  const info = await stat(output).catch(() => undefined);
  const folder = { kind: 'folder', path: output, format, combine: false } as const;
  const isFolder = info?.isDirectory() || output.endsWith('/');
  if (isFolder && wantsOne) throw new CliError(`--combine needs a file for -o, and ${output} is a folder.`);
  if (isFolder) return folder;

  const extension = extname(output).slice(1);
  const named = outputs.find((type) => type === OUTPUT_NAMES.get(extension.toLowerCase()));
  const areMany = args.length > 1 || (await matchesMany(args[0] as string));
  if (info === undefined && named === undefined && (areMany || hasNames) && !wantsOne) return folder;
  const canCombine = combine === 'implied' && named !== undefined && COMBINED_TYPES.includes(named);
  if (areMany && !canCombine && !wantsOne)
    throw new CliError(`-o ${output} is one file, for several inputs: a folder ends with a slash.`);
  if (info && !info.isFile()) throw new CliError(`-o ${output} is neither a file nor a folder.`);
  if (format !== undefined && named !== undefined && named !== format)
    throw new CliError(`-o ${output} and --format ${format} contradict each other.`);
  const known = format ?? named;
  if (known === undefined) {
    if (extension === '' && (await isMissingFolder(args[0] as string))) return folder;
    const types = outputs.join(', ') + explainDisabled(extension);
    const what = extension === '' ? 'has no extension' : `has an unknown extension (not one of ${types})`;
    throw new CliError(`-o ${output} ${what}: set --format, or end a folder with a slash.`);
  }
  return { kind: 'file', path: output, format: known, combine: wantsOne || areMany };
}

/** Returns whether a name is probably that of a misspelled folder, which another message names. */
async function isMissingFolder(arg: string): Promise<boolean> {
  return arg !== STDIN && extname(arg) === '' && (await stat(arg).catch(() => undefined)) === undefined;
}

export interface PlanOptions {
  readonly destination: Destination;
  readonly results: readonly Variant[];
  readonly inputs: Pick<Inputs, 'includes' | 'isOneFolder'>;
  readonly bulk: BulkOptions;
}

/**
 * Determines the output paths of each input, one after the other. The second of two results with
 * the same name gets ` (2)`, as in a ZIP archive of the service. With `--update` or `--shard`, the
 * name of a result must not depend on the other inputs, so that the second one is an error.
 */
export async function* planOutputs(
  found: AsyncIterable<Input>,
  { destination, results, inputs, bulk }: PlanOptions,
): AsyncGenerator<PlannedOutput> {
  const { update, shard, pattern } = bulk;
  const isFixed = update || shard !== undefined;
  let uniqueName = createUniqueNamer();
  /** The source of each result so far, if the second of a name is an error. */
  const sources = new Map<string, string>();
  let folder = '';
  let count = 0;

  for await (const input of found) {
    if (!('relativeDir' in input)) {
      // Every shard reports an error. Otherwise the other shards would seem to be complete.
      yield input;
      continue;
    }
    const { path, relativeDir } = input;
    // The files of one folder follow each other. With safe names, two folders can become one.
    if (inputs.isOneFolder && relativeDir !== folder && !bulk.safeNames) {
      folder = relativeDir;
      sources.clear();
      uniqueName = createUniqueNamer();
    }
    const name = path === STDIN ? '' : basename(path);
    count += 1;
    if (shard && !shard.includes(resultKey(relativeDir, name))) continue;
    const [unique, number] = [uniqueName, count];
    for (const { name: variant, options } of results) {
      if (destination.kind !== 'folder') {
        yield { input: path, output: destination.path, options };
        continue;
      }
      const suffix = variant && `-${variant}`;
      const nameLater = async (size: NameParts['size'], format: OutputType): Promise<string> => {
        const base = nameResult(relativeDir, { name, size, number }, bulk) + suffix;
        const result = isFixed ? `${base}.${format}` : unique(base, format);
        const output = join(destination.path, result);
        const other = sources.get(caseKey(result));
        if (other !== undefined) throw fileError('SAME_RESULT', path, other, output);
        if (isFixed) sources.set(caseKey(result), path);
        const isOwn = resolve(output) === resolve(path);
        if (!isOwn && (await inputs.includes(output))) throw fileError('OUTPUT_IS_INPUT', output);
        return output;
      };
      if (namesSize(pattern) || options.smallest) {
        const base = namesSize(pattern)
          ? join(relativeDir, pattern)
          : nameResult(relativeDir, { name, size: undefined, number }, bulk);
        const extension = options.smallest ? '{format}' : options.format;
        const output = join(destination.path, `${base}${suffix}.${extension}`);
        yield { input: path, output, options, nameLater };
      } else
        yield await nameLater(undefined, options.format).then(
          (output) => ({ input: path, output, options }),
          (error: FileError) => ({ path, error }),
        );
    }
  }
}

/** Returns the path of a result in the output folder, without the extension of its format. */
function nameResult(
  relativeDir: string,
  { name, ...parts }: NameParts,
  { keepExtension, safeNames, pattern }: BulkOptions,
): string {
  const own = baseNameOf(keepExtension && name !== '' ? `${name}.x` : name); // without one extension
  const base = fillPattern(pattern, { name: own, ...parts });
  if (!safeNames) return join(relativeDir, base);
  const folders = relativeDir.split('/').filter(Boolean).map(portableName);
  return join(...folders, portableName(base));
}

/**
 * Checks that a link between the output folder and a result does not lead out of the output folder.
 *
 * @param output the output folder. It may be a link itself.
 * @throws {Error} if one does
 */
export async function assertInside(result: string, output: string): Promise<void> {
  const folder = dirname(result);
  if (!isInside(await realPathOf(folder), await realPathOf(output)))
    throw new Error(`${folder} is a link that leads out of ${output}`);
}

/**
 * Checks before the conversion that the result can be written.
 *
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_IS_SOURCE, OUTPUT_UNWRITABLE
 */
export async function assertWritable(
  { input, output: result }: Pick<OutputJob, 'input' | 'output'>,
  replace: boolean,
  destination: Destination,
): Promise<void> {
  if (result === STDOUT) return;
  if (destination.kind === 'folder')
    await assertInside(result, destination.path).catch((error) => {
      throw fileError('OUTPUT_UNWRITABLE', result, error.message);
    });
  const info = await lstat(result).catch(() => undefined);
  if (info && !replace) {
    const source = await stat(input).catch(() => undefined);
    const isSource = info.ino === source?.ino && info.dev === source.dev;
    throw fileError(isSource ? 'OUTPUT_IS_SOURCE' : 'OUTPUT_EXISTS', result);
  }
  if (info && !info.isFile() && !info.isSymbolicLink())
    throw fileError('OUTPUT_UNWRITABLE', result, 'another kind of file has this name');
}

interface WriteOptions {
  /** Folder for the incomplete copy; by default the target's. */
  readonly temporaryFolder?: string;
  /** Modification time of the result, in ms; by default the present. */
  readonly modifiedMs?: number | undefined;
}

/**
 * Copies a result to its target, which may be on another disk.
 *
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_UNWRITABLE, OUTPUT_FULL
 */
export async function writeOutput(
  result: string,
  target: string,
  replace: boolean,
  { temporaryFolder, modifiedMs }: WriteOptions = {},
): Promise<void> {
  if (target === STDOUT) return pipeline(createReadStream(result), process.stdout, { end: false });
  const folder = dirname(target);
  await withWriteErrors(target, async () => {
    await createFolders(folder);
    await placeCopy(result, target, replace, temporaryFolder ?? folder, modifiedMs).catch((error) => {
      // A folder of the output may be on another disk than the rest.
      if (error.code !== 'EXDEV') throw error;
      return placeCopy(result, target, replace, folder, modifiedMs);
    });
  });
}

/**
 * Writes a result, or what a run records beside it.
 *
 * @param path the file that the message names
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_FULL, OUTPUT_UNWRITABLE
 */
export async function withWriteErrors(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    const exists = code === 'EEXIST';
    if (exists && syscall !== 'mkdir') throw fileError('OUTPUT_EXISTS', path);
    if (isDiskFull(error)) throw fileError('OUTPUT_FULL', path);
    const reason = exists ? `${dirname(path)} is not a folder` : systemReason(error);
    throw fileError('OUTPUT_UNWRITABLE', path, reason);
  }
}

/** The bits of a mode that a result takes over: not setuid and its like. */
const PERMISSIONS = 0o777;

/** Moves a copy to its target, with the mode of the file that it replaces, or of a new file. */
async function placeCopy(
  result: string,
  target: string,
  replace: boolean,
  folder: string,
  modifiedMs: number | undefined,
): Promise<void> {
  const temporary = join(folder, `${OWN_PREFIX}-${randomUUID()}`);
  try {
    // The system gives a new file the mode of the umask or of the folder's access control list.
    const file = await open(temporary, 'wx');
    const { mode } = await file.stat().finally(() => file.close());
    const replaced = replace ? await lstat(target).catch(() => undefined) : undefined;
    // The tools write for this user only, and a copy has the mode of its source.
    await chmod(result, (replaced?.isFile() ? replaced.mode : mode) & PERMISSIONS);
    await copyFile(result, temporary, constants.COPYFILE_FICLONE);
    if (modifiedMs !== undefined) await setModified(temporary, modifiedMs);
    await (replace ? rename : linkExclusive)(temporary, target);
  } finally {
    await rm(temporary, { force: true }).catch(() => {}); // report the earlier error instead
  }
}

/** Sets the modification time of a file. */
export const setModified = (path: string, ms: number): Promise<void> =>
  utimes(path, Date.now() / 1000, ms / 1000);

/** Moves a file without replacing another: link(2) fails if it exists, rename(2) replaces it. */
async function linkExclusive(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (['EEXIST', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // File system without links, such as FAT: reserve the name with an empty file.
    await (await open(to, 'wx')).close();
    await rename(from, to);
  }
}
