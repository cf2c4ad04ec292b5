/** @module Types of a conversion, for the callers of {@link Convert}. */
import type { DiskAccount } from '../files/disk-space.ts';
import type { FrameTiming } from '../images/combined/combiner.ts';
import type { RepairContext } from '../images/containers/file.ts';
import type { RevealedKind } from '../images/revealed/fields-table.ts';
import type { RunCommand } from '../process/command.ts';
import type { Toolchain } from '../process/toolchain.ts';
import type { Config } from '../tables/config.ts';
import type { BatchFile, ServiceError } from '../tables/errors.ts';
import type { InputType, OutputType } from '../tables/formats.ts';
import type { Note } from '../tables/notes.ts';
import type { Step, StepContext } from './plan/step.ts';
import type { ConvertOptions, ToolContext, Watermark } from './plan/types.ts';

/** What every conversion uses of this machine. */
export interface Machine {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly tools: ToolContext;
  readonly run: RunCommand;
  /** Absolute path of an sRGB profile. */
  readonly srgbProfile: string;
}

/** A conversion of a file. */
export interface FileConversion extends Machine {
  readonly source: ConversionInput;
  readonly onError: OnError;
  readonly signal: AbortSignal;
}

/** A conversion that has a slot. */
export interface RunningConversion extends FileConversion, StepContext {
  /** Limits of the repairs of the input. */
  readonly repairs: RepairContext;
  /** Size of the input before repairs, in bytes. */
  readonly sourceBytes: number;
  /** Maximum bytes of all files in its folder; see `sumDiskBytes`. */
  readonly maxBytes: number;
  /** Time at which the conversion times out, on the clock of `performance.now()`. */
  readonly deadline: number;
}

/** What the inspection of a file needs to run a program. */
export type Inspector = Pick<FileConversion, 'config' | 'toolchain' | 'run' | 'signal'>;

/** The file of an input, until it is disposed. */
export interface OwnedInput extends AsyncDisposable {
  /** Its size, for which disk space is reserved. A repair can change it. */
  readonly bytes: number;
  readonly repairs: RepairContext;
}

/** A file to convert. */
export interface ConversionInput {
  /** Private folder with the file as `INPUT_FILE`. The conversion removes it. */
  readonly folder: string;
  /** Disk space accounting of the request, for the file and its result. */
  readonly disk?: DiskAccount;
  readonly type: InputType;
  /** SHA-256 of the file in hex. By default, the file is read for it. */
  readonly sha256?: string;
  /** Name of the file in messages. */
  readonly label: string;
  /** Its place in the batch, if it is part of one. */
  readonly batchFile?: BatchFile | undefined;
  /** The image of a watermark for all its results. It is only read. */
  readonly watermark?: WatermarkFile | undefined;
  /** Client that sent the file. Without it, the conversion shares no process with others. */
  readonly client?: string | undefined;
  /** Time in ms of all conversions of a request that has one time limit. Each adds its own. */
  readonly timeUsed?: { ms: number };
  /** Returns whether the caller has the result with this key: no tool runs. For one result only. */
  readonly knows?: ((key: string) => boolean) | undefined;
  /** Called before each command is run. */
  readonly onCommand?: (step: Step) => void;
  /** Called with the error of a failed conversion, before its files are removed. */
  readonly onFailure?: (error: unknown) => void;
}

/** The image of a watermark. */
export interface WatermarkFile extends Watermark {
  readonly path: string;
}

/** A converted file. */
export interface ConversionResult {
  /** Path beside the folder of the input, where no tool can change it. */
  readonly path: string;
  readonly bytes: number;
  readonly format: OutputType;
  /** Size in pixels; undefined for a PDF. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** See `conversionKey`. */
  readonly key: string;
  /** Time in the queue, in milliseconds. */
  readonly queuedMs: number;
  /** Time of the repair and inspection of the input, in milliseconds. */
  readonly preparedMs: number;
  /** Time of the conversion, in milliseconds. */
  readonly convertedMs: number;
  /** Quality that was used. Only set with `max_bytes` and `quality=auto`. */
  readonly quality?: number | undefined;
  /** Whether djxl has restored the bytes of the source, a JPEG, from the result. */
  readonly isTranscoded?: boolean;
  /** See {@link Note}. Each occurs at most once, in a fixed order. */
  readonly notes: readonly Note[];
  /** What the metadata of the image gives away: what the result does not have, and what it has. */
  readonly removed: readonly RevealedKind[];
  readonly kept: readonly RevealedKind[];
}

/** The name and the value of a text field of a form. */
export type TextField = readonly [name: string, value: string];

/**
 * Parses the fields of a form, except empty and unknown ones. `accept` is the header `Accept`.
 *
 * @throws {ServiceError} with status 400, naming the field, its value and what was expected
 */
export type Parse<T> = (fields: readonly TextField[], accept?: string) => T;

/** One of several results of a file. */
export interface Variant {
  /** Letters, digits, dots, hyphens and underscores, for messages and the name of the result. */
  readonly name: string;
  readonly options: ConvertOptions;
}

/** Whether the first failed file or variant fails the whole request, or is skipped. */
export type OnError = 'fail' | 'skip';

/** A result, or the error if it was skipped. */
export type ConversionOutcome = {
  /** Name of the variant; undefined for the only result, or for an error of the file itself. */
  readonly variant?: string | undefined;
} & ({ readonly converted: ConversionResult } | { readonly error: ServiceError });

/** A result that becomes a part of a file. */
export type CombinedPart = Pick<ConversionResult, 'path' | 'bytes' | 'key'>;

/** How results become one file. */
export interface Combination {
  readonly format: OutputType;
  /** For the frames of an animation. */
  readonly timing: FrameTiming;
}

/**
 * Combines results to one file, in their order; `createCombine` implements it. Removes the results.
 *
 * @throws {ServiceError} about a limit, for the combined file
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export type Combine = (
  results: readonly CombinedPart[],
  combination: Combination,
  /** `folder` is private and empty. It is removed, and the file is beside it. */
  request: Pick<ConversionInput, 'folder' | 'disk' | 'client'> & { readonly signal: AbortSignal },
) => Promise<ConversionResult>;

/** A finished conversion, for metrics. */
export interface ConversionEvent {
  readonly input: InputType;
  readonly output: OutputType;
  /** As in {@link ConversionInput}. */
  readonly client: string | undefined;
  /** Cause of a failure; undefined after a success. */
  readonly error: unknown;
  /** Time in the queue, in milliseconds; undefined if the conversion did not start. */
  readonly queuedMs: number | undefined;
  /** Time of the conversion, in milliseconds; undefined if it did not start. */
  readonly ranMs: number | undefined;
}

/**
 * Converts one file; `createConvert` implements it. Removes the input, also after a failure. Leaves
 * only the result on disk.
 *
 * @param group files of one group share the queue as one client; see `ConversionQueue`
 * @throws {ServiceError} that names the file
 * @throws {KnownResultError} if the caller has the result
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export type Convert = (
  source: ConversionInput,
  options: ConvertOptions,
  signal: AbortSignal,
  group?: object,
) => Promise<ConversionResult>;

/**
 * Converts one file to several results, as {@link Convert}. The file is prepared once, and the
 * results share a place in the queue, the time limit, and the commands that are the same for them.
 *
 * @param onError whether a variant that fails is skipped. An error of the file itself is always
 *   thrown.
 * @returns an outcome for each variant, in the same order
 */
export type ConvertVariants = (
  source: ConversionInput,
  variants: readonly Variant[],
  onError: OnError,
  signal: AbortSignal,
  group?: object,
) => Promise<readonly ConversionOutcome[]>;
