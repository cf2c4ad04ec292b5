import { glob, open, readdir, stat } from 'node:fs/promises';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { DETECTION_BYTES, detectType } from '../../conversion/input/detect.ts';
import { INPUTS, type InputType } from '../../formats.ts';
import { type FileError, fileError, fileErrorFrom, systemReason } from './file-errors.ts';

/** The words of a command → files: named ones, those of folders, those that a pattern matches, standard input. */

export const STDIN = '-';

export interface Found {
  /** As people would write it; {@link STDIN} for standard input. */
  readonly path: string;
  /** The folders between what was named and the file, which are kept below the output folder. */
  readonly within: string;
}

/** What was named and cannot be converted. */
export interface InputError {
  readonly path: string;
  readonly error: FileError;
}

const PATTERN = /[*?[{]/;

/** Whether a word stands for any number of files. */
export async function matchesMany(word: string): Promise<boolean> {
  if (word === STDIN) return false;
  const info = await stat(word).catch(() => undefined);
  return info ? info.isDirectory() : PATTERN.test(word);
}

/**
 * Each file once, in the order of the words, those of a folder by their names.
 *
 * What is named must be an image. In folders and patterns, what is neither called an image nor is one is passed
 * over in silence; links to folders are not followed, so that none leads in a circle.
 *
 * @param output a folder whose files are results, and are passed over when it is inside of another
 * @param signal ends the search
 * @param types what counts as an image
 */
export async function findInputs(
  words: readonly string[],
  output: string | undefined,
  signal: AbortSignal,
  types: readonly InputType[],
): Promise<(Found | InputError)[]> {
  const isImage = imageTest(types);
  const found = new Map<string, Found | InputError>();
  const results = output === undefined ? undefined : resolve(output);
  for (const word of words) {
    for await (const input of inputsOf(word, results, isImage)) {
      if (signal.aborted) return [];
      const key = input.path === STDIN ? STDIN : resolve(input.path);
      if (!found.has(key)) found.set(key, input);
    }
  }
  return [...found.values()];
}

type ImageTest = (path: string) => Promise<boolean>;

async function* inputsOf(
  word: string,
  results: string | undefined,
  isImage: ImageTest,
): AsyncGenerator<Found | InputError> {
  if (word === STDIN) return yield { path: STDIN, within: '' };
  const info = await stat(word).catch((error: NodeJS.ErrnoException) => error);
  if (!(info instanceof Error)) {
    if (info.isFile()) return yield { path: word, within: '' };
    if (!info.isDirectory()) return yield { path: word, error: fileError('NOT_A_FILE', word) };
    return yield* orElse(imagesIn(word, word, results, isImage), {
      path: word,
      error: fileError('NO_IMAGES', word),
    });
  }
  if (PATTERN.test(word))
    return yield* orElse(matching(word, results, isImage), {
      path: word,
      error: fileError('NO_MATCH', word),
    });
  const error = ['ENOENT', 'ENOTDIR'].includes(info.code ?? '')
    ? fileError('NO_SUCH_FILE', word)
    : fileErrorFrom(info, 'UNREADABLE', word, systemReason(info));
  yield { path: word, error };
}

async function* orElse(
  inputs: AsyncIterable<Found | InputError>,
  otherwise: InputError,
): AsyncGenerator<Found | InputError> {
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
): AsyncGenerator<Found | InputError> {
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
      yield { path, within: relative(root, folder) };
    }
  }
}

/** Sub-folders are counted from the last folder that is written out in the pattern. */
async function* matching(
  pattern: string,
  results: string | undefined,
  isImage: ImageTest,
): AsyncGenerator<Found> {
  const parts = normalize(pattern).split('/');
  const root =
    parts
      .slice(
        0,
        parts.findIndex((part) => PATTERN.test(part)),
      )
      .join('/') || rootOf(pattern);
  const paths: string[] = [];
  for await (const path of glob(pattern)) paths.push(path);
  for (const path of paths.sort()) {
    if (results !== undefined && resolve(path).startsWith(`${results}/`) && resolve(root) !== results)
      continue;
    if (await isImage(path)) yield { path, within: relative(root, dirname(path)) };
  }
}

const rootOf = (pattern: string): string => (pattern.startsWith('/') ? '/' : '.');

/** By its name, which saves a look; or else by its bytes. What is called an image and is none is for somebody to know. */
function imageTest(types: readonly InputType[]): ImageTest {
  const names = types.flatMap((type) => INPUTS[type].names);
  const extensions = new RegExp(`\\.(?:${names.join('|')}|tif)$`, 'i');
  return async (path) => {
    const info = await stat(path).catch(() => undefined);
    if (!info?.isFile()) return false;
    return extensions.test(path) || (await holdsImage(path, types).catch(() => true)); // what cannot be read, too
  };
}

async function holdsImage(path: string, types: readonly InputType[]): Promise<boolean> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(DETECTION_BYTES);
    const { bytesRead } = await file.read(head, 0, DETECTION_BYTES, 0);
    const verdict = await detectType(head.subarray(0, bytesRead), bytesRead < DETECTION_BYTES);
    // A text so long before its first element is no drawing, unless it is called one.
    return types.some((type) => type === verdict);
  } finally {
    await file.close();
  }
}
