/** @module Errors of the `convert` command that concern one file. */
import { getSystemErrorMap } from 'node:util';
import { type ErrorCode, ServiceError } from '../../errors.ts';

/** The reason why a file was not converted, as reported to the user. */
export interface FileErrorCode {
  readonly code: string;
  readonly message: string;
}

/** Messages of errors that only the command line has. */
const MESSAGES = {
  NO_SUCH_FILE: (file: string) => `${file}: there is no such file or folder.`,
  NO_MATCH: (pattern: string) => `${pattern} matches no image.`,
  NO_IMAGES: (folder: string) => `There are no images in ${folder}.`,
  NOT_A_FILE: (file: string) => `${file} is neither a file nor a folder; "-" reads standard input.`,
  UNREADABLE: (file: string, why: string) => `${file} cannot be read: ${why}.`,
  OUTPUT_EXISTS: (file: string) => `${file} exists already: --force replaces it.`,
  OUTPUT_IS_INPUT: (file: string) => `${file} is another of the inputs, and is not replaced.`,
  OUTPUT_UNWRITABLE: (file: string, why: string) => `${file} cannot be written: ${why}.`,
  OUTPUT_UNDELETABLE: (file: string, why: string) => `${file} cannot be deleted: ${why}.`,
  OUTPUT_FULL: (file: string) => `${file} cannot be written: the disk is full.`,
  SAME_RESULT: (file: string, other: string, result: string) =>
    `${file} and ${other} would both become ${result}: rename one of them.`,
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

/** Creates the error with a code. */
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

/** Returns the system's description of an error, such as "permission denied". */
export function systemReason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}

/** Messages that replace those for clients of the service. */
const CLI_MESSAGES: Partial<Record<ErrorCode, string>> = {
  BUSY: 'The machine has no processes, files or memory left for this.',
  DISK_FULL: 'There is no room for working files: TEMP_DIR says where they are.',
  TOOLS_FAILING: 'The tools cannot be started: "imagemill doctor" says what is wrong.',
};
/** Sentences that are added to the messages for clients: what a user of this machine can do. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  FILE_TOO_LARGE: 'MAX_FILE_BYTES moves the limit.',
  PAIR_UNAVAILABLE: '"imagemill doctor" says what is missing.',
};

/** Returns whether an error means a full disk or an exceeded quota (errno(3)). */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

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
  return { code: 'INTERNAL', message: `${file}: something went wrong that should not: ${message}` };
}
