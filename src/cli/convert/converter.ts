/** @module Converters of files, tools or servers, and the errors that concern one file. */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { NameParts } from '../../base/name-pattern.ts';
import { sanitizeForDisplay } from '../../base/text.ts';
import type { Combination, CombinedPart, ConversionResult } from '../../conversion/context.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { systemReason } from '../../files/system.ts';
import type { Verification } from '../../regress/verifiable.ts';
import { describeUnsupported } from '../../tables/error-table.ts';
import { argsOf, type ErrorCode, isDiskFull, ServiceError } from '../../tables/errors.ts';
import type { OutputType } from '../../tables/formats.ts';

/** Argument for standard input. */
export const STDIN = '-';

/** Maximum length of a file name in a message, in UTF-16 units. A path has at most 4096 bytes. */
export const MAX_LABEL_LENGTH = 5000;

/** Names a source in messages. */
export const labelOf = (input: string): string =>
  input === STDIN ? 'Standard input' : sanitizeForDisplay(input, MAX_LABEL_LENGTH);

/** The result of a conversion, and what it was made from. */
export interface ConvertedFile
  extends Pick<ConversionResult, 'path' | 'width' | 'height' | 'notes' | 'removed' | 'kept'> {
  /** State of the source that was converted; undefined for standard input. */
  readonly sourceState: SourceState | undefined;
  /** See `conversionKey`; undefined if an instance of an earlier version has sent none. */
  readonly key?: string | undefined;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Undefined from an instance. */
  readonly format?: OutputType;
  /** Duration of the conversion in ms, without the time in the queue. */
  readonly ms: number;
  readonly verification?: Verification | undefined;
  /** Quality of the result, if `--max-bytes` limited its size. */
  readonly quality?: number | undefined;
}

/** A file to convert, and where its result belongs. */
export interface OutputJob {
  /** Path, or {@link STDIN}. */
  readonly input: string;
  /** Path, or `-` for standard output. With {@link nameLater}, words stand for what is unknown. */
  readonly output: string;
  readonly options: ConvertOptions;
  /**
   * Returns the path of a result that exists, if its name has its size, or its format was chosen.
   *
   * @throws {FileError} if the result would replace another input
   */
  readonly nameLater?: (size: NameParts['size'], format: OutputType) => Promise<string>;
}

/** Converts files, with the tools of this machine or with other instances. */
export interface Converter {
  /** Versions of the tools that determine the results. */
  readonly toolVersions: string;
  /**
   * Converts a file, and calls `use` with the result, which exists until `use` returns. Does not
   * write the output.
   *
   * @param known key of a result that exists
   * @throws {KnownResultError} if the result would have that key; then no tool was run
   * @throws {FileError} or {@link ServiceError} if the file cannot be converted
   * @throws {StopError} if no file can be converted any more
   */
  convert(job: OutputJob, use: (converted: ConvertedFile) => Promise<void>, known?: string): Promise<void>;
  /**
   * Returns the key that the result of a job would have, without a conversion. Only for the tools
   * of this machine.
   *
   * @throws {FileError} or {@link ServiceError} if the file cannot be converted
   */
  keyOf?(job: OutputJob): Promise<string | undefined>;
  /** Calls `work` with a folder for results that become one file. Only for this machine's tools. */
  combining?(work: (combining: Combining) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

interface Combining {
  /** Copies a result, which exists no longer than its conversion. */
  keep(converted: ConvertedFile): Promise<CombinedPart>;
  /** Combines kept results. Returns the path of the file and its size. */
  combine(
    parts: readonly CombinedPart[],
    combination: Combination,
  ): Promise<{ readonly path: string; readonly bytes: number }>;
}

/** Every further conversion would fail, too. The message states the cause. */
export class StopError extends Error {
  override readonly name = 'StopError';
}

/** Size and time of change of a source. */
export type SourceState = Pick<Stats, 'size' | 'mtimeMs'>;

/**
 * Returns the state of a source; undefined for standard input.
 *
 * @throws {FileError} UNREADABLE; NOT_A_FILE, because a folder has no bytes, and a pipe could block
 *   this process
 */
export async function stateOf(input: string): Promise<SourceState | undefined> {
  if (input === STDIN) return undefined;
  const info = await stat(input).catch((error) => {
    throw unreadable(error, input);
  });
  const what = info.isDirectory() ? 'a folder: name a file in it' : undefined;
  if (!info.isFile()) throw fileError('NOT_A_FILE', input, what);
  return info;
}

/**
 * Reads a source, and checks that it has not changed. If it has, reports that instead of the errors
 * that the change causes.
 *
 * @throws {FileError} SOURCE_CHANGED, UNREADABLE
 * @throws the errors of `read`
 */
export async function readUnchanged<T>(
  input: string,
  before: SourceState | undefined,
  read: () => Promise<T>,
): Promise<T> {
  const assertUnchanged = async (): Promise<void> => {
    const after = await stateOf(input);
    if (after?.size !== before?.size || after?.mtimeMs !== before?.mtimeMs)
      throw fileError('SOURCE_CHANGED', input);
  };
  try {
    const result = await read();
    await assertUnchanged();
    return result;
  } catch (error) {
    await assertUnchanged();
    if ((error as NodeJS.ErrnoException).syscall === 'read') throw unreadable(error, input);
    throw error;
  }
}

export type LazyConverter = ReturnType<typeof startOnDemand>;

/** Creates a converter that starts on first use. */
export function startOnDemand(start: () => Promise<Converter>) {
  let started: Promise<Converter> | undefined;
  return {
    start(): Promise<Converter> {
      started ??= start();
      return started;
    },
    async close(): Promise<void> {
      const converter = await started?.catch(() => undefined); // the caller of `start` has the error
      await converter?.close();
    },
  };
}

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
  NOT_A_FILE: (file: string, what = 'not a file. For standard input, use "-"') => `${file} is ${what}.`,
  UNREADABLE: (file: string, why: string) => `${file} cannot be read: ${why}.`,
  OUTPUT_EXISTS: (file: string) => `${file} already exists: use --force to overwrite it.`,
  OUTPUT_IS_SOURCE: (file: string) =>
    `${file} would be replaced by its own result: use --force if you do not need the original.`,
  OUTPUT_IS_INPUT: (file: string) => `${file} is one of the inputs, which are never overwritten.`,
  OUTPUT_UNWRITABLE: (file: string, why: string) => `${file} cannot be written: ${why}.`,
  OUTPUT_UNDELETABLE: (file: string, why: string) => `${file} cannot be deleted: ${why}.`,
  OUTPUT_FULL: (file: string) => `${file} cannot be written: the disk is full.`,
  SAME_RESULT: (file: string, other: string, result: string) =>
    `${file} and ${other} would both become ${result}: rename one of them.`,
  NAME_NOT_UTF8: (file: string) =>
    `${file}: the name is not valid UTF-8. Rename it, for example with convmv.`,
  NOT_VERIFIED: (file: string, why: string) =>
    `${file}: the result was not verified, and is not written: ${why}.`,
  SOURCE_CHANGED: (file: string) =>
    `${file} changed while it was read. Convert it again when it is complete.`,
} as const;

/** Reports a file that cannot be read or written. */
export class FileError extends Error implements FileErrorCode {
  override readonly name = 'FileError';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Creates the error with a code. `args` are the arguments of its message. */
export function fileError<C extends keyof typeof MESSAGES>(
  code: C,
  ...args: Parameters<(typeof MESSAGES)[C]>
): FileError {
  const format = MESSAGES[code] as (...args: readonly (string | undefined)[]) => string;
  return new FileError(code, format(...args));
}

/** Creates the error of a file or folder that cannot be read. */
export function unreadable(error: unknown, path: string): FileError {
  return fileError('UNREADABLE', path, systemReason(error));
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

/** @param file name of the file in the message of an unknown error */
export function toFileError(error: unknown, file: string): FileErrorCode {
  if (error instanceof FileError) return error;
  if (error instanceof ServiceError) {
    const { code, message } = error;
    const [label = '', supported = '', missing] = argsOf(error, 'UNSUPPORTED_TYPE') ?? [];
    // Without a setting, the commands read every format for which the tools are installed.
    const own = missing
      ? `${describeUnsupported(label, supported)}: ${missing} is not available here. See "imagemill doctor".`
      : message;
    return { code, message: CLI_MESSAGES[code] ?? [own, HINTS[code]].filter(Boolean).join(' ') };
  }
  const { message } = error as NodeJS.ErrnoException;
  if (isDiskFull(error)) return { code: 'DISK_FULL', message: CLI_MESSAGES.DISK_FULL as string };
  return { code: 'INTERNAL', message: `${file}: unexpected error: ${message}` };
}
