#!/usr/bin/env -S node --max-semi-space-size=1
/** @module Program entry point: the only module that reads `process.env` and `process.argv`. */
import * as module from 'node:module';
import { join } from 'node:path';
import { openUserCache } from './files/user-cache.ts';
import { VERSION } from './folders.ts';

let isReported = false;
// EPIPE is no error: the reader of standard output may exit early, as head(1) does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || isReported) return;
  isReported = true;
  process.exitCode ||= 1;
  console.error(`imagemill: Standard output cannot be written: ${error.message}.`);
});
// An error of standard error cannot be reported.
process.stderr.on('error', () => {});

const { argv, env } = process;
const args = argv.slice(2);
// The modules take half of the time for one file. The server writes nothing outside TEMP_DIR.
const cache = (args[0] ?? 'serve') === 'serve' ? undefined : openUserCache(env);
if (cache) module.enableCompileCache?.(join(cache, 'code'));
// Modules that are imported statically would be compiled before the cache is enabled.
const { runProgram } = await import('./cli/program.ts');
process.exitCode = (await runProgram(args, { env, version: VERSION })) || process.exitCode;
