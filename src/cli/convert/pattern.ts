/** @module Finds the images that match a pattern, such as `photos/*.jpg`. */
import { accessSync, constants, type Dirent } from 'node:fs';
import { glob, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { systemReason } from '../../files/system-reason.ts';
import { isInvalidName } from '../../text.ts';
import { fileError, fileErrorFrom } from './file-errors.ts';
import type { ImageTest } from './folder.ts';
import type { Input } from './input.ts';
import { isInside } from './paths.ts';

const WILDCARD = /[*?[{]/;

/** Returns whether an argument has wildcards. */
export const isPattern = (arg: string): boolean => WILDCARD.test(arg);

/** Options of {@link imagesMatching}. */
export interface PatternOptions {
  readonly test: ImageTest;
  /** Returns whether a folder holds results, and is skipped. */
  readonly isOutput: (folder: string) => Promise<boolean>;
  /** Called with the absolute path of each match, before the first image is yielded. */
  readonly onMatch: (path: string) => void;
}

/**
 * Yields the images that match a pattern, sorted by path, and an error for each folder that cannot be searched.
 * `relativeDir` is relative to the last folder in front of the first wildcard.
 */
export async function* imagesMatching(pattern: string, options: PatternOptions): AsyncGenerator<Input> {
  const { test, isOutput, onMatch } = options;
  const root = rootOf(pattern);
  const { paths, unreadable } = await search(pattern, root);
  for (const path of paths) onMatch(resolve(path));
  for (const [folder, error] of unreadable)
    yield { path: folder, error: fileErrorFrom(error, 'UNREADABLE', folder, systemReason(error)) };
  for (const path of paths.sort()) {
    if (await isInOutput(path, root, isOutput)) continue;
    const info = await stat(path).catch((error: Error) => error);
    if (info instanceof Error) {
      if (test.hasExtension(path)) yield { path, error: errorOf(path, info) };
    } else if (info.isFile() && (await test.isImage(path)))
      yield { path, relativeDir: relative(root, dirname(path)) };
  }
}

/** Returns the last folder in front of the first wildcard. */
function rootOf(pattern: string): string {
  const parts = normalize(pattern).split('/');
  const fixed = parts.slice(0, parts.findIndex(isPattern));
  return fixed.join('/') || (isAbsolute(pattern) ? '/' : '.');
}

/** Returns the matches, and the folders that cannot be searched with the reason. `glob` only skips these. */
async function search(
  pattern: string,
  root: string,
): Promise<{ readonly paths: string[]; readonly unreadable: ReadonlyMap<string, Error> }> {
  const pathOf = ({ parentPath, name }: Dirent): string => {
    const path = resolve(parentPath, name);
    return isAbsolute(pattern) ? path : relative('.', path);
  };
  const unreadable = new Map<string, Error>();
  const exclude = (entry: Dirent): boolean => {
    const path = pathOf(entry);
    const error =
      entry.isDirectory() && isInside(resolve(path), resolve(root)) ? accessError(path) : undefined;
    if (error) unreadable.set(path, error);
    return false;
  };
  const paths: string[] = [];
  for await (const entry of glob(pattern, { withFileTypes: true, exclude })) paths.push(pathOf(entry));
  return { paths, unreadable };
}

/** Returns why a folder cannot be searched, if so. */
function accessError(folder: string): Error | undefined {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** Returns why a match cannot be read. A name that is not UTF-8 has no path in Node.js. */
const errorOf = (path: string, error: Error) =>
  isInvalidName(path)
    ? fileError('NAME_NOT_UTF8', path)
    : fileErrorFrom(error, 'UNREADABLE', path, systemReason(error));

/** Returns whether one of the folders between a pattern's root and a match is the folder with the results. */
async function isInOutput(
  path: string,
  root: string,
  isOutput: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  const names = relative(root, dirname(path)).split('/').filter(Boolean);
  for (const count of names.keys()) if (await isOutput(join(root, ...names.slice(0, count + 1)))) return true;
  return false;
}
