/** @module The confined process that decodes files for `--verify`: a line of JSON for each result, in and out. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import type { InputType } from '../../formats.ts';
import type { VerifyMode } from '../../regress/verifiable.ts';
import { verify } from '../../regress/verify.ts';

/** A result to verify: paths of the files, and how the source was converted. */
export interface VerifyRequest {
  readonly mode: VerifyMode;
  readonly type: InputType;
  readonly source: string;
  readonly result: string;
  readonly options: ConvertOptions;
}

/**
 * Verifies the result of each line of standard input, until it ends.
 *
 * @returns the exit status
 */
export async function runVerifyWorker(): Promise<number> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { mode, type, source, result, options } = JSON.parse(line) as VerifyRequest;
    const verification = await verify(mode, type, await readFile(source), await readFile(result), options);
    process.stdout.write(`${JSON.stringify(verification)}\n`);
  }
  return 0;
}
