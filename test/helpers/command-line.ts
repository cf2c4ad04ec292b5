/** @module Runs the command line with the settings of the tests. */
import { execFile } from 'node:child_process';
import { MAIN, programEnvironment } from './process.ts';
import { testConfig } from './service.ts';

/** Exit status and output of a command. The status is -1 after a signal. */
export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `imagemill` with arguments and additional environment variables. */
export const runCli = (args: readonly string[], settings: Readonly<Record<string, string>> = {}) =>
  runNode([MAIN, ...args], settings);

/** Runs a file with Node.js: its path and arguments, and additional environment variables. */
export function runNode(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { PATH, MAGICK_BIN, RSVG_BIN, TEMP_DIR } = testConfig();
  const environment = { PATH, TEMP_DIR, ...(MAGICK_BIN && { MAGICK_BIN }), ...(RSVG_BIN && { RSVG_BIN }) };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { env: { ...programEnvironment(), ...environment, ...settings } },
      (error, stdout, stderr) =>
        resolve({ status: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr }),
    );
  });
}
