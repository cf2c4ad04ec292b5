/** @module Types of inputs of the `convert` command. */
import type { FileError } from './file-errors.ts';

/** Argument for standard input. */
export const STDIN = '-';

/** An input file. */
export interface InputFile {
  /** Path as a user would write it; {@link STDIN} for standard input. */
  readonly path: string;
  /** Folders between the argument and the file. They are also created in the output folder. */
  readonly relativeDir: string;
  /** Names of the other images of the same folder whose results would have the same name. */
  readonly rivals?: readonly string[];
}

/** An argument, or a file in a folder, that cannot be converted. */
export interface InputError {
  readonly path: string;
  readonly error: FileError;
}

/** A file or folder that is skipped intentionally, with a notice for the user. */
interface Skipped {
  readonly path: string;
  readonly notice: string;
}

/** A file, an error, or a notice. */
export type Input = InputFile | InputError | Skipped;
