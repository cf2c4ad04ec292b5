/**
 * @module Errors of the service. Each has a code of the table in error-table.ts, and the arguments
 * of its message. The private cause is in `cause`, for the log only. A service that cannot start
 * throws an error of its own.
 */
import type { Config } from './config.ts';
import { ERRORS, type ErrorCode, type ErrorDetails, type MessageArgs } from './error-table.ts';

export type { ErrorCode };

/** A time limit in ms, and the setting that changes it. Without a setting, it is fixed. */
export type TimeLimit = MessageArgs<'CONVERSION_TIMEOUT'>[1];

/** A file of a batch. */
export interface BatchFile {
  /** Position, from 0. */
  readonly index: number;
  /** Name in the request. Null if it has none. */
  readonly name: string | null;
}

/** An error as the API states it. */
export interface PublicError extends ErrorDetails {
  /** The HTTP status. */
  readonly code: number;
  readonly message: string;
  /** Names the error, for programs. */
  readonly reason: Lowercase<ErrorCode>;
  /** Whether the same request can succeed later. */
  readonly retryable: boolean;
  /** The file of a batch that the error concerns. */
  readonly file?: BatchFile | undefined;
}

/** Statuses of requests that can succeed when they are sent again without a change. */
const RETRYABLE_STATUSES = [408, 429, 503];

/** An error of the table. `status` and `message` can be sent to the client. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly args: MessageArgs<ErrorCode>;
  readonly status: number;
  /** Value of `Retry-After` in seconds; undefined if waiting does not help. */
  readonly retryAfter: number | undefined;
  /** The file of a batch that the error concerns. */
  readonly file: BatchFile | undefined;
  /** The variant that the message names besides its file. */
  readonly variant: string | undefined;

  /** See {@link serviceError}, which requires the arguments of the code. */
  constructor(
    code: ErrorCode,
    args: MessageArgs<ErrorCode>,
    cause?: unknown,
    file?: BatchFile,
    variant?: string,
  ) {
    const { status, message, retryAfter } = evaluateRow(code, args);
    super(message, { cause });
    this.code = code;
    this.args = args;
    this.status = status;
    this.retryAfter = retryAfter;
    this.file = file;
    this.variant = variant;
  }
}

function evaluateRow<C extends ErrorCode>(code: C, args: MessageArgs<C>) {
  const { status, message, retryAfter } = ERRORS[code];
  return { status, message: message(...args), retryAfter: retryAfter?.(...args) };
}

/** Returns the arguments of an error's message if it has this code. */
export const argsOf = <C extends ErrorCode>(error: unknown, code: C): MessageArgs<C> | undefined =>
  error instanceof ServiceError && error.code === code ? (error.args as MessageArgs<C>) : undefined;

/** Creates the error with a code. `args` are the arguments of its message. */
export function serviceError<C extends ErrorCode>(code: C, ...args: MessageArgs<C>): ServiceError {
  return new ServiceError(code, args);
}

/** Creates the error with a code, and a private `cause` for the log. */
export function serviceErrorFrom<C extends ErrorCode>(
  cause: unknown,
  code: C,
  ...args: MessageArgs<C>
): ServiceError {
  return new ServiceError(code, args, cause);
}

/** Returns whether an error concerns one file only, which `on_error=skip` leaves out. */
export function isFileError(error: unknown): error is ServiceError {
  return error instanceof ServiceError && ERRORS[error.code].scope === 'file';
}

/** Returns the error for another file or variant. The first argument is the label of the file. */
export function errorOfFile(
  { code, args, cause, variant: own }: ServiceError,
  label: string,
  file?: BatchFile,
  variant = own,
): ServiceError {
  const subject = variant === undefined ? label : `${label} (variant "${variant}")`;
  return new ServiceError(code, [subject, ...args.slice(1)] as typeof args, cause, file, variant);
}

/** Returns what a response says about an error. */
export function toPublicError({ code, args, status, message, file }: ServiceError): PublicError {
  return {
    code: status,
    message,
    reason: reasonOf(code),
    retryable: RETRYABLE_STATUSES.includes(status),
    ...detailsOf(code, args),
    file,
  };
}

/** Returns the name of an error in responses and metrics. */
export const reasonOf = (code: ErrorCode): Lowercase<ErrorCode> => code.toLowerCase() as Lowercase<ErrorCode>;

const detailsOf = <C extends ErrorCode>(code: C, args: MessageArgs<C>): ErrorDetails =>
  ERRORS[code].details(...args);

/** Returns whether a file system error means a full disk or an exceeded quota (errno(3)). */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** A result would be one that its caller has; see `ConversionInput`. No tool was run. */
export class KnownResultError extends Error {
  override readonly name = 'KnownResultError';
  /** See `conversionKey`. */
  readonly key: string;
  constructor(key: string) {
    super(`the result with the key ${key} is known`);
    this.key = key;
  }
}

/** The client disconnected before the response was complete. */
export class ClientDisconnectedError extends Error {
  override readonly name = 'ClientDisconnectedError';
  constructor(options?: ErrorOptions) {
    super('the client disconnected', options);
  }
}

interface StartupErrorOptions extends ErrorOptions {
  readonly isTemporary?: boolean;
  readonly setting?: string;
}

/** The service cannot start on this machine. The message states the cause. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
  /** Whether a later start can succeed without a change of the settings or the tools. */
  readonly isTemporary: boolean;
  /** The setting that must change; undefined if the cause is not a setting. */
  readonly setting: string | undefined;
  constructor(message: string, { isTemporary = false, setting, ...options }: StartupErrorOptions = {}) {
    super(message, options);
    this.isTemporary = isTemporary;
    this.setting = setting;
  }
}

/** Converts an error of a full disk. Returns other errors as they are. */
export function toStartupError(error: unknown, { TEMP_DIR }: Config): unknown {
  if (!isDiskFull(error) && !(error instanceof ServiceError && error.code === 'DISK_FULL')) return error;
  const problem = `TEMP_DIR ${TEMP_DIR} cannot be written: the disk is full.`;
  return new StartupError(problem, { cause: error, isTemporary: true, setting: 'TEMP_DIR' });
}
