import { getSystemErrorMap } from 'node:util';
import { type ErrorCode, ServiceError } from '../../errors.ts';

/** Why a file was not converted, in words for whoever typed the command. */

export interface FileErrorCode {
  readonly code: string;
  readonly message: string;
}

/** What only happens to files that are on this machine already. */
const ROWS = {
  NO_SUCH_FILE: (file: string) => `${file}: there is no such file or folder.`,
  NO_MATCH: (pattern: string) => `${pattern} matches no image.`,
  NO_IMAGES: (folder: string) => `There are no images in ${folder}.`,
  NOT_A_FILE: (file: string) => `${file} is neither a file nor a folder; "-" reads standard input.`,
  UNREADABLE: (file: string, why: string) => `${file} cannot be read: ${why}.`,
  OUTPUT_EXISTS: (file: string) => `${file} exists already: --force replaces it.`,
  OUTPUT_IS_INPUT: (file: string) => `${file} is another of the inputs, and is not replaced.`,
  OUTPUT_UNWRITABLE: (file: string, why: string) => `${file} cannot be written: ${why}.`,
} as const;

export class FileError extends Error implements FileErrorCode {
  override readonly name = 'LocalTrouble';
  readonly code: string;
  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

type Row = keyof typeof ROWS;

export function fileError<C extends Row>(code: C, ...facts: Parameters<(typeof ROWS)[C]>): FileError {
  return fileErrorFrom(undefined, code, ...facts);
}

export function fileErrorFrom<C extends Row>(
  cause: unknown,
  code: C,
  ...facts: Parameters<(typeof ROWS)[C]>
): FileError {
  const say = ROWS[code] as (...facts: string[]) => string;
  return new FileError(code, say(...facts), cause);
}

/** What the system says was wrong, such as "permission denied". */
export function systemReason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}

/** Where the sentences for clients of the service make no sense. */
const CLI_MESSAGES: Partial<Record<ErrorCode, string>> = {
  BUSY: 'The machine has no processes, files or memory left for this.',
  DISK_FULL: 'There is no room for working files: TEMP_DIR says where they are.',
  TOOLS_FAILING: 'The tools cannot be started: "imagemill doctor" says what is wrong.',
};
/** What somebody can do who has the machine. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  FILE_TOO_LARGE: 'MAX_FILE_BYTES moves the limit.',
  PAIR_UNAVAILABLE: '"imagemill doctor" says what is missing.',
};

/** No room left, errno(3). */
const FULL = ['ENOSPC', 'EDQUOT'];

/** @param file what the message names when nothing else is known */
export function toFileError(error: unknown, file: string): FileErrorCode {
  if (error instanceof FileError) return error;
  if (error instanceof ServiceError) {
    const { code, message } = error;
    return { code, message: CLI_MESSAGES[code] ?? [message, HINTS[code]].filter(Boolean).join(' ') };
  }
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (FULL.includes(code)) return { code: 'DISK_FULL', message: CLI_MESSAGES.DISK_FULL as string };
  return { code: 'INTERNAL', message: `${file}: something went wrong that should not: ${message}` };
}
