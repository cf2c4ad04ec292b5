import { execFile } from 'node:child_process';
import { runInProcess } from './in-process.ts';
import { MAIN, programEnvironment } from './process.ts';
import { testConfig } from './service.ts';

/** Exit status and output of a command. The status is -1 after a signal. */
export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The status, and what was written to stderr. */
  readonly outcome: string;
}

/** Runs `imagemill` as a process, with arguments. */
export const runCli = (args: readonly string[]) => runNode([MAIN, ...args]);

/**
 * Runs `imagemill` in the process of the test, with arguments and additional environment variables.
 */
export async function runCliInProcess(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { status, lines, complaints } = await runInProcess(args, { env: { ...environment(), ...settings } });
  return toEnded(Number(status), lines.join('\n'), complaints.join('\n'));
}

/** Runs a file with Node.js: its path and arguments, and additional environment variables. */
export function runNode(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { env: { ...programEnvironment(), ...environment(), ...settings } },
      (error, stdout, stderr) =>
        resolve(toEnded(typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr)),
    );
  });
}

const toEnded = (status: number, stdout: string, stderr: string): Ended => ({
  status,
  stdout,
  stderr,
  outcome: `${status} ${stderr}`.trim(),
});

function environment(): Record<string, string> {
  const { PATH, MAGICK_BIN, RSVG_BIN, TEMP_DIR } = testConfig();
  return { PATH, TEMP_DIR, ...(MAGICK_BIN && { MAGICK_BIN }), ...(RSVG_BIN && { RSVG_BIN }) };
}
