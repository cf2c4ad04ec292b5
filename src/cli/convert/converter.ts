/** @module Converters of files: the tools of this machine, or servers. */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { systemReason } from '../../files/system.ts';
import { fileError, fileErrorFrom } from './file-errors.ts';
import { STDIN } from './find-images.ts';

export interface Conversion {
  /** Path of the result in a temporary folder. */
  readonly path: string;
  /** State of the source that was converted; undefined for standard input. */
  readonly source: SourceState | undefined;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Duration of the conversion in ms, without the time in the queue. */
  readonly ms: number;
  readonly notes: readonly string[];
  /** Quality of the result, if `--max-bytes` limited its size. */
  readonly quality?: number;
}

/** Converts files. */
export interface Converter {
  /** Versions of the tools that determine the results. */
  readonly toolVersions: string;
  /**
   * Converts a file, and calls `use` with the result, which exists until `use` returns.
   *
   * @param input path, or {@link STDIN}
   * @throws {FileError} or {@link ServiceError} if the file cannot be converted
   * @throws {StopError} if no file can be converted any more
   */
  convert(input: string, use: (result: Conversion) => Promise<void>): Promise<void>;
  /** Releases all resources. */
  close(): Promise<void>;
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
 * @throws {FileError} UNREADABLE
 */
export async function stateOf(input: string): Promise<SourceState | undefined> {
  if (input === STDIN) return undefined;
  return stat(input).catch((error) => {
    throw fileErrorFrom(error, 'UNREADABLE', input, systemReason(error));
  });
}

/**
 * Reads a source, and checks that it has not changed. If it has, reports that instead of the errors that the change
 * causes.
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
    throw error;
  }
}

/** A converter that starts on first use. */
export interface LazyConverter {
  /** Starts the converter, unless it has started. */
  start(): Promise<Converter>;
  /** Ends the converter if it has started. */
  close(): Promise<void>;
}

/** Creates a converter that starts on first use. */
export function startOnDemand(start: () => Promise<Converter>): LazyConverter {
  let started: Promise<Converter> | undefined;
  return {
    start() {
      started ??= start();
      return started;
    },
    async close() {
      const converter = await started?.catch(() => undefined); // the caller of `start` has the error
      await converter?.close();
    },
  };
}
