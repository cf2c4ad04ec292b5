/** @module The cache folder of this user. What another user could have written is not read. */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

/** Maximum size of a file in the cache, in bytes. */
const MAX_FILE_BYTES = 1024 ** 2;
/** Permissions of the group and of others, and those to write. */
const [FOREIGN_RIGHTS, FOREIGN_WRITES] = [0o077, 0o022];

const isOwn = ({ uid, mode }: Stats, forbidden: number): boolean =>
  uid === process.getuid?.() && (mode & forbidden) === 0;

/**
 * Returns `XDG_CACHE_HOME/imagemill` or `~/.cache/imagemill`, and creates it if it is missing.
 * Undefined if not only this user can change it: another owner, a link, or open to others.
 */
export function openUserCache({
  XDG_CACHE_HOME,
  HOME,
}: Readonly<Record<string, string | undefined>>): string | undefined {
  const base = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  if (!base || !isAbsolute(base)) return undefined;
  const folder = join(base, 'imagemill');
  try {
    makeFolder(base);
    // A user who can write to the parent folder can replace this one.
    if (!isOwn(statSync(base), FOREIGN_WRITES)) return undefined;
    makeFolder(folder);
    const info = lstatSync(folder);
    return info.isDirectory() && isOwn(info, FOREIGN_RIGHTS) ? folder : undefined;
  } catch {
    return undefined; // the disk is read-only, or a file has this name
  }
}

/** Creates a folder, unless it exists or its parent is another user's, as HOME is with `sudo`. */
function makeFolder(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) return;
  if (!isOwn(statSync(dirname(path)), 0)) return;
  mkdirSync(path, { mode: 0o700 });
}

/** Returns the text of a file in the cache folder, if only this user can change it. */
export function readCached(path: string): string | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const info = fstatSync(file);
      const isSafe = info.isFile() && isOwn(info, FOREIGN_RIGHTS) && info.size <= MAX_FILE_BYTES;
      return isSafe ? readFileSync(file, 'utf8') : undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

/** Replaces a file in the cache folder at once. A file that cannot be written is no error. */
export function writeCached(path: string, text: string): void {
  const made = `${path}.${randomUUID()}`;
  try {
    writeFileSync(made, text, { flag: 'wx', mode: 0o600 });
    renameSync(made, path);
  } catch {
    rmSync(made, { force: true });
  }
}
