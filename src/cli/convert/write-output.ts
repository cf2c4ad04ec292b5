/** @module Writes results atomically. Without `--force`, no existing file is replaced. */
import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isDiskFull } from '../../errors.ts';
import { createFolders } from '../../files/create-folders.ts';
import { systemReason } from '../../files/system-reason.ts';
import { fileError, fileErrorFrom } from './file-errors.ts';
import { OWN_PREFIX } from './folder.ts';
import { isInside, realPathOf } from './paths.ts';
import { STDOUT } from './targets.ts';

/**
 * Checks that a link between the output folder and a result does not lead out of the output folder.
 *
 * @param output the output folder. It may be a link itself.
 * @throws {Error} if one does
 */
export async function assertInside(result: string, output: string): Promise<void> {
  const folder = dirname(result);
  if (!isInside(await realPathOf(folder), await realPathOf(output)))
    throw new Error(`${folder} is a link that leads out of ${output}`);
}

/**
 * Checks before the conversion that the result can be written.
 *
 * @param output the output folder, if the command has one
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_UNWRITABLE
 */
export async function assertWritable(target: string, replace: boolean, output?: string): Promise<void> {
  if (target === STDOUT) return;
  if (output !== undefined)
    await assertInside(target, output).catch((error) => {
      throw fileErrorFrom(error, 'OUTPUT_UNWRITABLE', target, error.message);
    });
  const info = await lstat(target).catch(() => undefined);
  if (info && !replace) throw fileError('OUTPUT_EXISTS', target);
  if (info && !info.isFile() && !info.isSymbolicLink())
    throw fileError('OUTPUT_UNWRITABLE', target, 'another kind of file has this name');
}

/**
 * Copies a result to its target, which may be on another disk.
 *
 * @param temporaryFolder folder for the incomplete copy; by default the target's
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_UNWRITABLE, OUTPUT_FULL
 */
export async function writeOutput(
  result: string,
  target: string,
  replace: boolean,
  temporaryFolder?: string,
): Promise<void> {
  if (target === STDOUT) return pipeline(createReadStream(result), process.stdout, { end: false });
  const folder = dirname(target);
  try {
    await createFolders(folder);
    await placeCopy(result, target, replace, temporaryFolder ?? folder).catch((error) => {
      // A folder of the output may be on another disk than the rest.
      if (error.code !== 'EXDEV') throw error;
      return placeCopy(result, target, replace, folder);
    });
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    const exists = code === 'EEXIST';
    if (exists && syscall !== 'mkdir') throw fileErrorFrom(error, 'OUTPUT_EXISTS', target);
    if (isDiskFull(error)) throw fileErrorFrom(error, 'OUTPUT_FULL', target);
    const reason = exists ? `${folder} is not a folder` : systemReason(error);
    throw fileErrorFrom(error, 'OUTPUT_UNWRITABLE', target, reason);
  }
}

async function placeCopy(result: string, target: string, replace: boolean, folder: string): Promise<void> {
  const temporary = join(folder, `${OWN_PREFIX}-${randomUUID()}`);
  try {
    await copyFile(result, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await (replace ? rename : linkExclusive)(temporary, target);
  } finally {
    await rm(temporary, { force: true }).catch(() => {}); // report the earlier error instead
  }
}

/** Moves a file without replacing another one: link(2) fails if the target exists, while rename(2) replaces it. */
async function linkExclusive(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (['EEXIST', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // File system without links, such as FAT: reserve the name with an empty file.
    await (await open(to, 'wx')).close();
    await rename(from, to);
  }
}
