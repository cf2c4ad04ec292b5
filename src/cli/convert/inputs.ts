/** @module Resolves the arguments of the `convert` command to files: files, folders, patterns and standard input. */
import { glob, open, readdir, stat } from 'node:fs/promises';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { DETECTION_BYTES, detectType } from '../../conversion/input/detect.ts';
import { INPUTS, type InputType } from '../../formats.ts';
import { type FileError, fileError, fileErrorFrom, systemReason } from './file-errors.ts';

/** Argument for standard input. */
export const STDIN = '-';

/** An input file. */
export interface InputFile {
  /** Path as a user would write it; {@link STDIN} for standard input. */
  readonly path: string;
  /** Folders between the argument and the file. They are also created in the output folder. */
  readonly relativeDir: string;
}

/** An argument that cannot be converted. */
export interface InputError {
  readonly path: string;
  readonly error: FileError;
}

const PATTERN = /[*?[{]/;

/** Returns whether an argument may stand for several files. */
export async function matchesMany(arg: string): Promise<boolean> {
  if (arg === STDIN) return false;
  const info = await stat(arg).catch(() => undefined);
  return info ? info.isDirectory() : PATTERN.test(arg);
}

/**
 * Finds the input files. Each file occurs once, in the order of the arguments. Files of a folder are sorted by name.
 *
 * A file that is an argument must be an image. In folders and matches of patterns, a file with neither the extension
 * nor the content of an image is skipped. Links to folders are not followed, to avoid cycles.
 *
 * @param output folder with results, which is skipped in other folders
 * @param signal aborts the search
 * @param types what counts as an image
 */
export async function findInputs(
  args: readonly string[],
  output: string | undefined,
  signal: AbortSignal,
  types: readonly InputType[],
): Promise<(InputFile | InputError)[]> {
  const isImage = imageTest(types);
  const found = new Map<string, InputFile | InputError>();
  const results = output === undefined ? undefined : resolve(output);
  for (const arg of args) {
    for await (const input of inputsFor(arg, results, isImage)) {
      if (signal.aborted) return [];
      const key = input.path === STDIN ? STDIN : resolve(input.path);
      if (!found.has(key)) found.set(key, input);
    }
  }
  return [...found.values()];
}

/** Returns whether a file is an image. */
type ImageTest = (path: string) => Promise<boolean>;

async function* inputsFor(
  arg: string,
  results: string | undefined,
  isImage: ImageTest,
): AsyncGenerator<InputFile | InputError> {
  if (arg === STDIN) return yield { path: STDIN, relativeDir: '' };
  const info = await stat(arg).catch((error: NodeJS.ErrnoException) => error);
  if (!(info instanceof Error)) {
    if (info.isFile()) return yield { path: arg, relativeDir: '' };
    if (!info.isDirectory()) return yield { path: arg, error: fileError('NOT_A_FILE', arg) };
    return yield* orElse(imagesIn(arg, arg, results, isImage), {
      path: arg,
      error: fileError('NO_IMAGES', arg),
    });
  }
  if (PATTERN.test(arg))
    return yield* orElse(matching(arg, results, isImage), {
      path: arg,
      error: fileError('NO_MATCH', arg),
    });
  const error = ['ENOENT', 'ENOTDIR'].includes(info.code ?? '')
    ? fileError('NO_SUCH_FILE', arg)
    : fileErrorFrom(info, 'UNREADABLE', arg, systemReason(info));
  yield { path: arg, error };
}

async function* orElse(
  inputs: AsyncIterable<InputFile | InputError>,
  otherwise: InputError,
): AsyncGenerator<InputFile | InputError> {
  let any = false;
  for await (const input of inputs) {
    any = true;
    yield input;
  }
  if (!any) yield otherwise;
}

async function* imagesIn(
  folder: string,
  root: string,
  results: string | undefined,
  isImage: ImageTest,
): AsyncGenerator<InputFile | InputError> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: Error) => error);
  if (entries instanceof Error) {
    yield { path: folder, error: fileErrorFrom(entries, 'UNREADABLE', folder, systemReason(entries)) };
    return;
  }
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (resolve(path) !== results) yield* imagesIn(path, root, results, isImage);
    } else if (await isImage(path)) {
      yield { path, relativeDir: relative(root, folder) };
    }
  }
}

/** Yields the images that match a pattern. `within` is relative to the last folder in front of the first wildcard. */
async function* matching(
  pattern: string,
  results: string | undefined,
  isImage: ImageTest,
): AsyncGenerator<InputFile> {
  const parts = normalize(pattern).split('/');
  const root =
    parts
      .slice(
        0,
        parts.findIndex((part) => PATTERN.test(part)),
      )
      .join('/') || defaultRoot(pattern);
  const paths: string[] = [];
  for await (const path of glob(pattern)) paths.push(path);
  for (const path of paths.sort()) {
    if (results !== undefined && resolve(path).startsWith(`${results}/`) && resolve(root) !== results)
      continue;
    if (await isImage(path)) yield { path, relativeDir: relative(root, dirname(path)) };
  }
}

const defaultRoot = (pattern: string): string => (pattern.startsWith('/') ? '/' : '.');

/**
 * Returns a test for whether a file's extension or content is that of an image. A file with an image extension and other
 * content passes, so that its conversion reports an error.
 */
function imageTest(types: readonly InputType[]): ImageTest {
  const names = types.flatMap((type) => INPUTS[type].names);
  const extensions = new RegExp(`\\.(?:${names.join('|')}|tif)$`, 'i');
  return async (path) => {
    const info = await stat(path).catch(() => undefined);
    if (!info?.isFile()) return false;
    // Unreadable files pass, too: their conversion reports the error.
    return extensions.test(path) || (await hasImageContent(path, types).catch(() => true));
  };
}

async function hasImageContent(path: string, types: readonly InputType[]): Promise<boolean> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(DETECTION_BYTES);
    const { bytesRead } = await file.read(head, 0, DETECTION_BYTES, 0);
    const detected = await detectType(head.subarray(0, bytesRead), bytesRead < DETECTION_BYTES);
    // A text without an element in its first bytes does not count as SVG, unless it has the extension.
    return types.some((type) => type === detected);
  } finally {
    await file.close();
  }
}
