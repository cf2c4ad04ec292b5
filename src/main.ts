#!/usr/bin/env -S node --optimize-for-size
import { readFileSync } from 'node:fs';
import { runProgram } from './cli/program.ts';

/** Where the program begins: the only place that looks at its environment and its arguments. */

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// Whoever reads what is printed may have seen enough, as head(1) has after ten lines.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), { env: process.env, version });
