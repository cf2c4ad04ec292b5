/**
 * @module Errors of the service. Each has a code of the table in error-table.ts, and the arguments of its message. The
 * private cause is in `cause`, for the log only. A service that cannot start throws an error of its own.
 */

import type { Config } from './config.ts';
import { ERRORS, type ErrorCode, type MessageArgs } from './error-table.ts';

export type { ErrorCode };

/** A time limit in milliseconds, and the setting that changes it. Without a setting, the limit is fixed. */
export type TimeLimit = MessageArgs<'CONVERSION_TIMEOUT'>[1];

/** An error of the table. `status` and `message` can be sent to the client. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  /** Arguments of the message. */
  readonly args: MessageArgs<ErrorCode>;
  readonly status: number;
  /** Value of `Retry-After` in seconds; undefined if waiting does not help. */
  readonly retryAfter: number | undefined;

  /** See {@link serviceError}, which requires the arguments of the code. */
  constructor(code: ErrorCode, args: MessageArgs<ErrorCode>, cause?: unknown) {
    const { status, message, retryAfter } = describe(code, args);
    super(message, { cause });
    this.code = code;
    this.args = args;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

function describe<C extends ErrorCode>(code: C, args: MessageArgs<C>) {
  const { status, message, retryAfter } = ERRORS[code];
  return { status, message: message(...args), retryAfter: retryAfter?.(...args) };
}

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

/** Returns whether an error concerns one file only. A batch with `on_error=skip` continues without the file. */
export function isFileError(error: unknown): error is ServiceError {
  return error instanceof ServiceError && ERRORS[error.code].scope === 'file';
}

/** Returns the same error for another file. `error` concerns one file, so its first argument is the label of the file. */
export function relabelFileError({ code, args, cause }: ServiceError, label: string): ServiceError {
  return new ServiceError(code, [label, ...args.slice(1)] as typeof args, cause);
}

/** Returns whether an error of the file system means a full disk or an exceeded quota (errno(3)). */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
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
