/** @module Determines the paths of the results. */
import { stat } from 'node:fs/promises';
import { extname, join, resolve } from 'node:path';
import { baseNameOf, createUniqueNamer } from '../../conversion/filename.ts';
import { DEFAULT_FORMAT } from '../../conversion/options.ts';
import { OUTPUTS, type OutputType, parseOutputType } from '../../formats.ts';
import { CliError } from '../context.ts';
import { type FileError, fileError } from './file-errors.ts';
import { type InputError, type InputFile, matchesMany, STDIN } from './inputs.ts';

/** Value of `-o` for standard output. */
export const STDOUT = '-';

/** The value of `-o`, resolved. */
export interface Target {
  readonly kind: 'file' | 'folder' | 'stdout';
  readonly path: string;
  readonly format: OutputType;
}

/** An input file, and the path of its result or {@link STDOUT}. */
export interface Job {
  readonly input: string;
  readonly output: string;
}
/** A job, or the error of an input without one. */
export type OutputJob = Job | { readonly input: string; readonly error: FileError };

/**
 * Resolves `-o`. It is a folder if that folder exists, if it ends with a slash, or if there may be several results.
 *
 * @param format value of `--format`, if given
 * @param outputs the formats that are on
 * @throws {CliError} with status 2, if the arguments contradict each other
 */
export async function resolveTarget(
  output: string,
  args: readonly string[],
  format: OutputType | undefined,
  outputs: readonly OutputType[],
): Promise<Target> {
  if (output === STDOUT) return { kind: 'stdout', path: output, format: format ?? DEFAULT_FORMAT };
  const info = await stat(output).catch(() => undefined);
  const folder = { kind: 'folder', path: output, format: format ?? DEFAULT_FORMAT } as const;
  if (info?.isDirectory() || output.endsWith('/')) return folder;

  const extension = extname(output).slice(1);
  const named = outputs.find((type) => type === parseOutputType(extension));
  if (args.length > 1 || (await matchesMany(args[0] as string))) {
    if (info === undefined && named === undefined) return folder;
    throw new CliError(`-o ${output} is one file, for several inputs: a folder ends with a slash.`, 2);
  }
  if (info && !info.isFile()) throw new CliError(`-o ${output} is neither a file nor a folder.`, 2);
  if (format !== undefined && named !== undefined && named !== format)
    throw new CliError(`-o ${output} and --format ${format} contradict each other.`, 2);
  const known = format ?? named;
  if (known === undefined) {
    const types = outputs.join(', ');
    const what = extension === '' ? 'has no extension' : `has an extension that is none of ${types}`;
    throw new CliError(`-o ${output} ${what}: say --format, or end it with a slash when it is a folder.`, 2);
  }
  return { kind: 'file', path: output, format: known };
}

/**
 * Determines the output path of each input. Of several results with the same name, the second gets ` (2)`, as in a ZIP
 * archive of the service.
 *
 * @throws {CliError} with status 2, if several results have the same target
 */
export function resolveOutputs(
  inputs: readonly (InputFile | InputError)[],
  { kind, path, format }: Target,
): OutputJob[] {
  if (kind !== 'folder' && inputs.length > 1)
    throw new CliError(`-o ${path} takes one result, and there are ${inputs.length} inputs.`, 2);
  const uniqueName = createUniqueNamer(OUTPUTS[format].extension);
  const originals = new Set(inputs.map((input) => resolve(input.path)));

  return inputs.map((input) => {
    if ('error' in input) return { input: input.path, error: input.error };
    const base = () => join(input.relativeDir, baseNameOf(input.path === STDIN ? undefined : input.path));
    const output = kind === 'folder' ? join(path, uniqueName(base())) : path;
    const replaces = kind !== 'stdout' && resolve(output);
    if (replaces && replaces !== resolve(input.path) && originals.has(replaces))
      return { input: input.path, error: fileError('OUTPUT_IS_INPUT', output) };
    return { input: input.path, output };
  });
}
