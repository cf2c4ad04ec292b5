import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { hasSignature, type InputType, OUTPUTS } from '../../formats.ts';
import { type ConvertOptions, OUTPUT_STEM } from '../plan/types.ts';
import { invalidOutput } from './tool-errors.ts';

/** Whether what the tools left is what was asked for. */

/** What it was made from. */
interface OutputContext {
  readonly folder: string;
  readonly type: InputType;
  readonly label: string;
}

export interface VerifiedOutput {
  readonly path: string;
  readonly bytes: number;
}

/**
 * Moves the result out of the folder and checks it there. Success is one file, the expected one, that is not empty and
 * starts as its format does.
 *
 * It is moved because a tool could change what a name in its folder stands for between the check and the sending. Beside
 * the folder no tool can reach it, so that it needs no descriptor until it is sent: a large batch would take too many.
 *
 * @throws ServiceError CORRUPT_IMAGE, when there is no such result; nothing is left of it then
 */
export function verifyOutput(source: OutputContext, options: ConvertOptions, output: string): VerifiedOutput {
  const outputs = readdirSync(source.folder).filter((name) => name.startsWith(OUTPUT_STEM));
  if (outputs.length !== 1 || outputs[0] !== output) {
    throw invalidOutput(`expected ${output}, found ${outputs.length} files: ${outputs.slice(0, 3)}`, source);
  }
  const format = OUTPUTS[options.format];
  // Of several encodes the best is kept, so that each needs a name of its own.
  const encode = options.maxBytes === undefined ? '' : `.q${options.quality}`;
  const path = `${source.folder}${encode}.${format.extension}`;
  renameSync(join(source.folder, output), path);
  try {
    const bytes = checkedSize(path, format);
    if (bytes !== undefined) return { path, bytes };
  } catch (error) {
    if (!isNoFile(error)) throw error;
  }
  rmSync(path, { recursive: true, force: true });
  throw invalidOutput(`${output} is not a file that starts like ${options.format}`, source);
}

/**
 * The bytes of a file of this format. It was written a moment ago: to look at it waits for no disk.
 *
 * @returns undefined for what is no such file, or has another name somewhere
 */
function checkedSize(path: string, format: (typeof OUTPUTS)['webp']): number | undefined {
  // Neither a link nor a pipe, which would be waited for for ever.
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const info = fstatSync(file);
    if (!info.isFile() || info.nlink > 1) return undefined;
    const head = Buffer.alloc(16);
    const length = readSync(file, head, 0, head.length, 0);
    return hasSignature(format, head.subarray(0, length)) ? info.size : undefined;
  } finally {
    closeSync(file);
  }
}

/** What open(2) and read(2) report when a tool left no file: nothing, a link, a pipe, a socket or a folder. */
const NO_FILE = ['ENOENT', 'ELOOP', 'ESPIPE', 'ENXIO', 'EISDIR'];

/** Whether an error says that a tool left no file under the name that it should have written. */
export function isNoFile(error: unknown): boolean {
  return NO_FILE.includes((error as NodeJS.ErrnoException).code ?? '');
}
