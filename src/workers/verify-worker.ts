/** @module Confined process that decodes for `--verify`: a line of JSON for each, in and out. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { VerifyRequest } from '../regress/verifiable.ts';
import { verify } from '../regress/verify.ts';

for await (const line of createInterface({ input: process.stdin })) {
  const { mode, type, source, result, options } = JSON.parse(line) as VerifyRequest;
  const verification = await verify(mode, type, await readFile(source), await readFile(result), options);
  process.stdout.write(`${JSON.stringify(verification)}\n`);
}
