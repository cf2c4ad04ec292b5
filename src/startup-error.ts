/** @module The error of a service that cannot start. */

import type { Config } from './config.ts';
import { isDiskFull, ServiceError } from './errors.ts';

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
