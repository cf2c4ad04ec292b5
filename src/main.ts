#!/usr/bin/env -S node --optimize-for-size
/** @module Program entry point: the only module that reads `process.env` and `process.argv`. */
import { runProgram } from './cli/program.ts';
import { VERSION } from './folders.ts';

let isReported = false;
// The reader of standard output may exit early, as head(1) does after ten lines. EPIPE is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || isReported) return;
  isReported = true;
  process.exitCode ||= 1;
  console.error(`imagemill: Standard output cannot be written: ${error.message}.`);
});
// An error of standard error cannot be reported.
process.stderr.on('error', () => {});

const status = await runProgram(process.argv.slice(2), { env: process.env, version: VERSION });
process.exitCode = status || process.exitCode;
