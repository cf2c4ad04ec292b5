import { execFile } from 'node:child_process';
import { testConfig } from './service.ts';

/** The program as people call it. */

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function runCli(
  words: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { PATH, MAGICK_BIN, RSVG_BIN, TEMP_DIR } = testConfig();
  const own = { PATH, TEMP_DIR, ...(MAGICK_BIN && { MAGICK_BIN }), ...(RSVG_BIN && { RSVG_BIN }) };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...words], { env: { ...own, ...settings } }, (error, stdout, stderr) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr }),
    );
  });
}
