/** @module Finds the images of a folder, and those that match a pattern such as `photos/*.jpg`. */
import { isUtf8 } from 'node:buffer';
import { accessSync, constants, type Dirent } from 'node:fs';
import { glob, readdir, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { baseNameOf, caseKey, isInvalidName, isSystemFile } from '../../base/text.ts';
import { unsupportedType } from '../../conversion/input/store.ts';
import { isInside } from '../../files/system.ts';
import { type DetectedType, detectFileType } from '../../images/index.ts';
import { serviceError } from '../../tables/errors.ts';
import { INPUTS, type InputType } from '../../tables/formats.ts';
import { type FileError, fileError, labelOf, stateOf, unreadable } from './converter.ts';

interface InputFile {
  /** Path as a user would write it; {@link STDIN} for standard input. */
  readonly path: string;
  /** Folders between the argument and the file. They are also created in the output folder. */
  readonly relativeDir: string;
}

/** An argument, or a file in a folder, that cannot be converted. */
export interface InputError {
  readonly path: string;
  readonly error: FileError;
}

/** A file or folder that is skipped intentionally, with a notice for the user. */
export interface Skipped {
  readonly path: string;
  readonly notice: string;
}

export type Input = InputFile | InputError | Skipped;

/**
 * Returns a key that is equal for two inputs if their results have the same name, also on a file
 * system that ignores case. It is the same on every machine.
 */
export function resultKey(relativeDir: string, fileName: string): string {
  return caseKey(join(relativeDir, baseNameOf(fileName)));
}

/** Start of the names of all files that the `convert` command creates beside results. */
export const OWN_PREFIX = '.imagemill';

type ImageTest = ReturnType<typeof createImageTest>;

/** Creates the test that recognizes images of the enabled formats by name and content. */
export function createImageTest(types: readonly InputType[]) {
  const names = types.flatMap((type) => INPUTS[type].names);
  const extensions = new RegExp(`\\.(?:${names.join('|')}|tif)$`, 'i');
  const hasExtension = (name: string): boolean => extensions.test(name);
  const isEnabled = (detected: DetectedType): boolean => types.some((type) => type === detected);
  return {
    hasExtension,
    /**
     * Returns whether a regular file has the extension or the content of an image. An unreadable
     * file, and one with an image extension and other content, is kept, so that its conversion
     * reports an error.
     */
    isImage: async (path: string): Promise<boolean> =>
      hasExtension(path) || detectFileType(path).then(isEnabled, () => true),
    /**
     * Checks the first bytes of a source as its conversion does.
     *
     * @throws {FileError} or {ServiceError} UNREADABLE, NOT_A_FILE, EMPTY_FILE, UNSUPPORTED_TYPE
     */
    async assertImage(path: string): Promise<void> {
      const state = await stateOf(path);
      if (!state) return; // standard input
      if (state.size === 0) throw serviceError('EMPTY_FILE', labelOf(path));
      const detected = await detectFileType(path).catch((error) => {
        throw unreadable(error, path);
      });
      if (detected !== 'unsure' && !isEnabled(detected))
        throw unsupportedType(labelOf(path), detected, types);
    },
  };
}

export interface WalkOptions {
  /** The folder of the argument, to which `relativeDir` is relative. */
  readonly root: string;
  readonly test: ImageTest;
  /** Returns whether a sub-folder holds results, and is skipped. */
  readonly isOutput: (folder: string) => Promise<boolean>;
  /** Order of the names in a folder, and of the matches of a pattern. Default: by code units. */
  readonly compare?: ((one: string, other: string) => number) | undefined;
  readonly onFolder?: ((folder: string) => void) | undefined;
}

/** Yields a folder's images by name, then those of its sub-folders. Follows no links to folders. */
export async function* walkImages(folder: string, options: WalkOptions): AsyncGenerator<Input> {
  const { root, test, isOutput, compare, onFolder } = options;
  onFolder?.(folder);
  const entries = await namesIn(folder, compare).catch((error: Error) => error);
  if (entries instanceof Error) {
    yield { path: folder, error: unreadable(entries, folder) };
    return;
  }
  const relativeDir = relative(root, folder);
  const files = entries.filter(({ kind }) => kind !== 'folder');
  for (const { path, kind, isInvalid } of files) {
    if (isInvalid) {
      if (test.hasExtension(path)) yield { path, error: fileError('NAME_NOT_UTF8', path) };
      continue;
    }
    const found = kind === 'link' ? await followLink(path, test) : await test.isImage(path);
    if (typeof found === 'object') yield found;
    else if (found) yield { path, relativeDir };
  }
  for (const { kind, path, isInvalid } of entries) {
    if (kind !== 'folder') continue;
    if (isInvalid) yield { path, error: fileError('NAME_NOT_UTF8', path) };
    else if (!(await isOutput(path))) yield* walkImages(path, options);
  }
}

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly kind: 'file' | 'link' | 'folder';
  /** The name is not UTF-8. `name` has its bytes as `\xE9`. */
  readonly isInvalid: boolean;
}

/**
 * Reads a folder. Latin-1 keeps every byte of a name, also if the name is not UTF-8.
 *
 * @throws {Error} with the code of the failed system call
 */
async function namesIn(folder: string, compare: WalkOptions['compare']): Promise<Entry[]> {
  const entries = (await readdir(folder, { withFileTypes: true, encoding: 'latin1' })).flatMap((dirent) => {
    const kind = kindOf(dirent);
    if (!kind || dirent.name.startsWith(OWN_PREFIX) || isSystemFile(dirent.name)) return [];
    const bytes = Buffer.from(dirent.name, 'latin1');
    const isInvalid = !isUtf8(bytes);
    const name = isInvalid ? escapeBytes(dirent.name) : bytes.toString();
    return [{ name, path: join(folder, name), kind, isInvalid }];
  });
  return entries.sort((a, b) => compare?.(a.name, b.name) ?? (a.name < b.name ? -1 : 1));
}

function kindOf(dirent: Dirent): Entry['kind'] | undefined {
  if (dirent.isFile()) return 'file';
  if (dirent.isDirectory()) return 'folder';
  return dirent.isSymbolicLink() ? 'link' : undefined;
}

const escapeBytes = (latin1: string): string =>
  latin1.replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).toUpperCase()}`);

/** Returns whether a link leads to an image, or why the link is skipped. */
async function followLink(path: string, { hasExtension, isImage }: ImageTest): Promise<boolean | Input> {
  const info = await stat(path).catch((error: Error) => error);
  // A broken or circular link.
  if (info instanceof Error) return hasExtension(path) && { path, error: unreadable(info, path) };
  if (info.isDirectory())
    return {
      path,
      notice: `${path} is a link to a folder and is not followed. To convert it, name it as an input.`,
    };
  return info.isFile() && isImage(path);
}

/** Returns whether an argument has wildcards. */
export const isPattern = (arg: string): boolean => /[*?[{]/.test(arg);

export interface PatternOptions extends Pick<WalkOptions, 'test' | 'isOutput' | 'compare'> {
  /** Called with the absolute path of each match, before the first image is yielded. */
  readonly onMatch: (path: string) => void;
}

/**
 * Yields the images that match a pattern, sorted by path, and an error for each folder that cannot
 * be searched. `relativeDir` is relative to the last folder in front of the first wildcard.
 */
export async function* imagesMatching(pattern: string, options: PatternOptions): AsyncGenerator<Input> {
  const { test, isOutput, compare, onMatch } = options;
  const root = rootOf(pattern);
  const { paths, errors } = await search(pattern, root);
  for (const path of paths) onMatch(resolve(path));
  for (const [folder, error] of errors) yield { path: folder, error: unreadable(error, folder) };
  for (const path of paths.sort(compare)) {
    if (isSystemFile(path) || (await isInOutput(path, root, isOutput))) continue;
    const info = await stat(path).catch((error: Error) => error);
    if (info instanceof Error) {
      // A name that is not UTF-8 has no path in Node.js.
      const error = isInvalidName(path) ? fileError('NAME_NOT_UTF8', path) : unreadable(info, path);
      if (test.hasExtension(path)) yield { path, error };
    } else if (info.isFile() && (await test.isImage(path)))
      yield { path, relativeDir: relative(root, dirname(path)) };
  }
}

function rootOf(pattern: string): string {
  const parts = normalize(pattern).split('/');
  const fixed = parts.slice(0, parts.findIndex(isPattern));
  return fixed.join('/') || (isAbsolute(pattern) ? '/' : '.');
}

/** Returns the matches, and folders that cannot be searched and why. `glob` only skips these. */
async function search(
  pattern: string,
  root: string,
): Promise<{ readonly paths: string[]; readonly errors: ReadonlyMap<string, Error> }> {
  const pathOf = ({ parentPath, name }: Dirent): string => {
    const path = resolve(parentPath, name);
    return isAbsolute(pattern) ? path : relative('.', path);
  };
  const errors = new Map<string, Error>();
  const exclude = (entry: Dirent): boolean => {
    const path = pathOf(entry);
    const error =
      entry.isDirectory() && isInside(resolve(path), resolve(root)) ? accessError(path) : undefined;
    if (error) errors.set(path, error);
    return false;
  };
  const paths: string[] = [];
  for await (const entry of glob(pattern, { withFileTypes: true, exclude })) paths.push(pathOf(entry));
  return { paths, errors };
}

function accessError(folder: string): Error | undefined {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** Returns whether a folder between a pattern's root and a match is that of the results. */
async function isInOutput(
  path: string,
  root: string,
  isOutput: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  const names = relative(root, dirname(path)).split('/').filter(Boolean);
  for (const count of names.keys()) if (await isOutput(join(root, ...names.slice(0, count + 1)))) return true;
  return false;
}
