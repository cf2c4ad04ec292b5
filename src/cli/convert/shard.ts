/** @module Divides inputs between several processes or machines. */
import { createHash } from 'node:crypto';
import { CliError } from '../context.ts';

/** One of several parts of the inputs. */
export interface Shard {
  /** From 1 to {@link count}. */
  readonly number: number;
  readonly count: number;
  /** Returns whether an input belongs to this part. */
  includes(key: string): boolean;
}

/** Maximum number of parts. */
const MAX_SHARDS = 10_000;

/**
 * Parses the value of `--shard`. Every input belongs to exactly one of the parts, the same one on every machine.
 *
 * @throws {CliError} with status 2
 */
export function parseShard(text: string): Shard {
  const [, number = 0, count = 0] = (/^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? []).map(Number);
  if (count < 1 || count > MAX_SHARDS)
    throw new CliError(
      `Invalid --shard "${text}": expected I/N, such as 1/4, with N up to ${MAX_SHARDS}.`,
      2,
    );
  if (number < 1 || number > count)
    throw new CliError(`--shard ${text} is out of range: the parts are numbered 1 to ${count}.`, 2);
  return { number, count, includes: (key) => hash(key) % count === number - 1 };
}

/** Returns 48 bits of the SHA-256 hash, which a number represents exactly. */
function hash(key: string): number {
  return createHash('sha256').update(key).digest().readUIntBE(0, 6);
}
