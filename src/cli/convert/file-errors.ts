/** @module Errors of the `convert` command that concern one file. */
import { type ErrorCode, isDiskFull, ServiceError } from '../../errors.ts';

/** Reason why a file was not converted, as reported to the user. */
export interface FileErrorCode {
  readonly code: string;
  readonly message: string;
}

/** Messages of errors that only the command line has. */
const MESSAGES = {
  NO_SUCH_FILE: (file: string) => `${file}: no such file or folder.`,
  NO_MATCH: (pattern: string) => `${pattern} matches no image.`,
  NO_IMAGES: (folder: string) => `There are no images in ${folder}.`,
  NOT_A_FILE: (file: string) => `${file} is neither a file nor a folder. For standard input, use "-".`,
  UNREADABLE: (file: string, why: string) => `${file} cannot be read: ${why}.`,
  OUTPUT_EXISTS: (file: string) => `${file} already exists: use --force to overwrite it.`,
  OUTPUT_IS_INPUT: (file: string) => `${file} is one of the inputs, which are never overwritten.`,
  OUTPUT_UNWRITABLE: (file: string, why: string) => `${file} cannot be written: ${why}.`,
  OUTPUT_UNDELETABLE: (file: string, why: string) => `${file} cannot be deleted: ${why}.`,
  OUTPUT_FULL: (file: string) => `${file} cannot be written: the disk is full.`,
  SAME_RESULT: (file: string, other: string, result: string) =>
    `${file} and ${other} would both become ${result}: rename one of them, or use --keep-extension.`,
  NAME_NOT_UTF8: (file: string) =>
    `${file}: the name is not valid UTF-8. Rename it, for example with convmv.`,
  SOURCE_CHANGED: (file: string) =>
    `${file} changed while it was read. Convert it again when it is complete.`,
} as const;

/** Reports a file that cannot be read or written. */
export class FileError extends Error implements FileErrorCode {
  override readonly name = 'FileError';
  readonly code: string;
  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

type LocalCode = keyof typeof MESSAGES;

export function fileError<C extends LocalCode>(
  code: C,
  ...args: Parameters<(typeof MESSAGES)[C]>
): FileError {
  return fileErrorFrom(undefined, code, ...args);
}

/** Creates the error with a code and a cause. */
export function fileErrorFrom<C extends LocalCode>(
  cause: unknown,
  code: C,
  ...args: Parameters<(typeof MESSAGES)[C]>
): FileError {
  const format = MESSAGES[code] as (...args: string[]) => string;
  return new FileError(code, format(...args), cause);
}

/** Messages that replace those for clients of the service. */
const CLI_MESSAGES: Partial<Record<ErrorCode, string>> = {
  OVERLOADED: 'The system has no processes, file descriptors or memory left.',
  DISK_FULL:
    'There is no disk space left for working files. Free space in TEMP_DIR, or set TEMP_DIR to another folder.',
  CONVERTER_UNAVAILABLE: 'The tools do not start. Run "imagemill doctor" to find out why.',
};
/** Advice for users of this machine, which is added to the message for clients. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  FILE_TOO_LARGE: 'Raise the limit with --max-file-size or MAX_FILE_BYTES.',
  TOO_MANY_PIXELS: 'Raise the limit with --max-pixels or MAX_PIXELS.',
  CONVERSION_UNSUPPORTED: 'Run "imagemill doctor" to see what is missing.',
};

/**
 * Converts an error of a conversion to its code and message.
 *
 * @param file name of the file in the message of an unknown error
 */
export function toFileError(error: unknown, file: string): FileErrorCode {
  if (error instanceof FileError) return error;
  if (error instanceof ServiceError) {
    const { code, message } = error;
    return { code, message: CLI_MESSAGES[code] ?? [message, HINTS[code]].filter(Boolean).join(' ') };
  }
  const { message } = error as NodeJS.ErrnoException;
  if (isDiskFull(error)) return { code: 'DISK_FULL', message: CLI_MESSAGES.DISK_FULL as string };
  return { code: 'INTERNAL', message: `${file}: unexpected error: ${message}` };
}
