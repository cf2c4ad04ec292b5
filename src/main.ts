#!/usr/bin/env -S node --optimize-for-size
/** @module Program entry point: the only module that reads `process.env` and `process.argv`. */
import { readFileSync } from 'node:fs';
import { runProgram } from './cli/program.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// The reader of standard output may exit early, as head(1) does after ten lines. EPIPE is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), { env: process.env, version });
