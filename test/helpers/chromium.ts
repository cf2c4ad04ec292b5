import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const FOLDERS = (process.env.PATH ?? '').split(delimiter);
const PLACES = [
  ...NAMES.flatMap((name) => FOLDERS.map((folder) => join(folder, name))),
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Where the machine's Chromium is; the bootstrap installs Debian's. */
export function chromiumPath(): string {
  const found = PLACES.find((path) => {
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

/** For a machine where the tests run as root, and where nothing is to be asked of hosts elsewhere. */
export const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
];
