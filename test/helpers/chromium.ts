/** @module Finds Chromium for the browser tests. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const FOLDERS = (process.env.PATH ?? '').split(delimiter);
const CANDIDATES = [
  ...NAMES.flatMap((name) => FOLDERS.map((folder) => join(folder, name))),
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/**
 * Returns the path of Chromium or Chrome on this machine. `scripts/bootstrap.sh` installs the Debian package.
 *
 * @throws {Error} if there is none
 */
export function chromiumPath(): string {
  const found = CANDIDATES.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) throw new Error('No Chromium on this machine. On Debian: apt install chromium');
  return found;
}

/** Flags that allow Chromium to run as root and prevent requests to other hosts. */
export const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
];
