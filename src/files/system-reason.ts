/** @module Describes errors of the system in words. */
import { getSystemErrorMap } from 'node:util';

/** Returns the system's description of an error, such as "permission denied". */
export function systemReason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}
