import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileError, fileErrorFrom, systemReason } from './file-errors.ts';
import { STDOUT } from './targets.ts';

/** Results appear whole or not at all, and take no other file's place unless that was asked for. */

/** @throws LocalTrouble OUTPUT_EXISTS, so that nobody converts for nothing */
export async function assertWritable(target: string, force: boolean): Promise<void> {
  if (target === STDOUT) return;
  const info = await lstat(target).catch(() => undefined);
  if (info && !force) throw fileError('OUTPUT_EXISTS', target);
  if (info && !info.isFile() && !info.isSymbolicLink())
    throw fileError('OUTPUT_UNWRITABLE', target, 'there is something else of that name');
}

/**
 * Copies a result to where it is wanted; it may be another disk.
 *
 * @throws LocalTrouble OUTPUT_EXISTS, OUTPUT_UNWRITABLE
 */
export async function writeOutput(result: string, target: string, force: boolean): Promise<void> {
  if (target === STDOUT) return pipeline(createReadStream(result), process.stdout, { end: false });
  const folder = dirname(target);
  const temporary = join(folder, `.imagemill-${randomUUID()}`);
  try {
    await mkdir(folder, { recursive: true });
    await copyFile(result, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await (force ? rename : linkExclusive)(temporary, target);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    const taken = code === 'EEXIST';
    if (taken && syscall !== 'mkdir') throw fileErrorFrom(error, 'OUTPUT_EXISTS', target);
    const why = taken ? `${folder} is not a folder` : systemReason(error);
    throw fileErrorFrom(error, 'OUTPUT_UNWRITABLE', target, why);
  } finally {
    await rm(temporary, { force: true }).catch(() => {}); // what went wrong before is what is told
  }
}

/** A second name for the file cannot be that of another: link(2) fails where rename(2) would replace. */
async function linkExclusive(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    // A disk without links, such as FAT: an empty file keeps the place.
    await (await open(to, 'wx')).close();
    await rename(from, to);
  }
}
