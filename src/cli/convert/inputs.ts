/** @module Finds the inputs of `convert`: files, folders, patterns and standard input. */
import { lstat, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isInvalidName } from '../../base/text.ts';
import { isInside, isMissing, realPathOf } from '../../files/system.ts';
import type { InputType } from '../../tables/formats.ts';
import { fileError, STDIN, unreadable } from './converter.ts';
import {
  createImageTest,
  type Input,
  imagesMatching,
  isPattern,
  type PatternOptions,
  walkImages,
} from './find-images.ts';

/** Returns whether an argument can match several files. */
export async function matchesMany(arg: string): Promise<boolean> {
  if (arg === STDIN) return false;
  const info = await stat(arg).catch(() => undefined);
  return info ? info.isDirectory() : isPattern(arg);
}

interface Root {
  /** Path as the user wrote it. */
  readonly path: string;
  /** Absolute path without symbolic links. */
  readonly real: string;
}

export type Inputs = Awaited<ReturnType<typeof createInputs>>;

/**
 * @param output folder with results, which is skipped in other folders
 * @param compare order of the names in a folder, and of the matches of a pattern
 */
export async function createInputs(
  args: readonly string[],
  output: string | undefined,
  signal: AbortSignal,
  types: readonly InputType[],
  compare?: PatternOptions['compare'],
) {
  const results = output === undefined ? undefined : await realPathOf(output);
  const test = createImageTest(types);
  const roots: Root[] = [];
  /** Absolute paths of arguments that are files, and of matches of patterns. */
  const files = new Set<string>();
  for (const arg of args) {
    if (arg === STDIN) continue;
    const info = await stat(arg).catch(() => undefined);
    if (info?.isDirectory()) roots.push({ path: arg, real: await realPathOf(arg) });
    else if (info) files.add(resolve(arg));
  }
  const isOutput = async (folder: string): Promise<boolean> =>
    results !== undefined && (await realPathOf(folder)) === results;

  /**
   * Finds the input files. Each file occurs once, in the order of the arguments. The files of a
   * folder are sorted by name and precede its sub-folders.
   *
   * A file that is an argument must be an image. In folders and matches of patterns, a file with
   * neither the extension nor the content of an image is skipped. Links to folders are not
   * followed, to avoid cycles.
   */
  async function* find(onFolder?: (folder: string) => void): AsyncGenerator<Input> {
    const seenFiles = new Set<string>();
    const seenRoots: string[] = [];
    for (const arg of args) {
      const root = roots.find(({ path }) => path === arg);
      const found = root
        ? walkImages(arg, { root: arg, test, isOutput, compare, onFolder })
        : inputsFor(arg, { isOutput, test, compare, onMatch: (path) => files.add(path) });
      for await (const input of orElse(found, arg, root !== undefined)) {
        if (signal.aborted) return;
        const path = resolve(input.path);
        if (seenFiles.has(path) || (await isInOne(seenRoots, path))) continue;
        if (!root) seenFiles.add(path);
        yield input;
      }
      if (root) seenRoots.push(root.real);
    }
  }

  return {
    roots: roots as readonly Root[],
    isOneFolder: args.length === 1 && roots.length === 1,
    areFolders: args.length === roots.length,
    areMany: args.length > 1 || (await matchesMany(args[0] as string)),
    find,
    test,
    /** Returns whether a path belongs to an existing input file. */
    async includes(path: string): Promise<boolean> {
      if ((await lstat(path).catch(() => undefined)) === undefined) return false;
      if (files.has(resolve(path))) return true;
      const real = await realPathOf(path);
      const containing = roots.filter((root) => isInside(real, root.real));
      // The folder with the results is skipped in the folders that contain it.
      const isSkipped = (root: Root): boolean =>
        results !== undefined && isInside(results, root.real) && isInside(real, results);
      return !containing.every(isSkipped);
    },
  };
}

async function isInOne(folders: readonly string[], path: string): Promise<boolean> {
  if (folders.length === 0) return false;
  const real = await realPathOf(path);
  return folders.some((folder) => isInside(real, folder));
}

/** Yields the inputs that match an argument that is not a folder. */
async function* inputsFor(arg: string, options: PatternOptions): AsyncGenerator<Input> {
  if (arg === STDIN) return yield { path: STDIN, relativeDir: '' };
  const info = await stat(arg).catch((error: NodeJS.ErrnoException) => error);
  if (!(info instanceof Error)) {
    if (info.isFile()) yield { path: arg, relativeDir: '' };
    else yield { path: arg, error: fileError('NOT_A_FILE', arg) };
  } else if (isPattern(arg)) {
    yield* imagesMatching(arg, options);
  } else {
    const missing = isInvalidName(arg) ? 'NAME_NOT_UTF8' : 'NO_SUCH_FILE';
    yield { path: arg, error: isMissing(info) ? fileError(missing, arg) : unreadable(info, arg) };
  }
}

/** Yields the inputs of an argument, or an error if there are none. */
async function* orElse(inputs: AsyncIterable<Input>, arg: string, isFolder: boolean): AsyncGenerator<Input> {
  let any = false;
  for await (const input of inputs) {
    any ||= !('notice' in input);
    yield input;
  }
  if (!any) yield { path: arg, error: fileError(isFolder ? 'NO_IMAGES' : 'NO_MATCH', arg) };
}
