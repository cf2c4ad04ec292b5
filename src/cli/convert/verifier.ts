/** @module Verifies results in confined processes, one for each conversion that runs at a time. */
import { existsSync } from 'node:fs';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { createFolders, systemReason } from '../../files/system.ts';
import { ASSETS_DIR, FORK_SERVER_LIBRARY, MAIN } from '../../folders.ts';
import { startWorker, type Worker } from '../../process/single-process.ts';
import type { Verification } from '../../regress/verifiable.ts';
import { fileErrorFrom } from './converter.ts';
import type { Question } from './verify-worker.ts';

/** Verifies results. */
export interface Verifier {
  /**
   * Verifies a result.
   *
   * @param input name of the source, for messages and the name of the picture
   * @throws {FileError} NOT_VERIFIED
   */
  verify(question: Question, input: string): Promise<Verification>;
  close(): void;
}

/** Time limit of one result, in ms. */
const TIMEOUT_MS = 120_000;
/** Folders and files that Node.js and sharp read, if they exist. */
const READABLE = [
  '/usr/lib',
  '/lib',
  '/lib64',
  '/usr/local/lib',
  '/etc/ld.so.cache',
  '/etc/ssl',
  '/dev/null',
  '/proc',
  '/sys',
];

/**
 * Creates the verifier. Workers start on demand.
 *
 * @param pictures folder for pictures of the worst places, if any
 */
export async function createVerifier(
  engine: ConversionEngine,
  pictures: string | undefined,
): Promise<Verifier> {
  const root = await engine.workspaces.root();
  const folder = join(root, 'verify');
  await mkdir(folder, { recursive: true });
  const isConfined = engine.layers.files === 'landlock' && existsSync(FORK_SERVER_LIBRARY);
  const own = [dirname(ASSETS_DIR), dirname(dirname(process.execPath)), root, ...READABLE];
  const readable = (await Promise.all(own.map((path) => realpath(path).catch(() => [])))).flat();
  const start = (): Promise<Worker> =>
    startWorker(
      {
        args: [process.execPath, '--max-old-space-size=2048', MAIN, 'verify-worker'],
        env: { PATH: '/usr/bin:/bin', HOME: '/nonexistent', LC_ALL: 'C.UTF-8', TMPDIR: folder },
        cwd: folder,
        // V8 reserves address space far beyond the memory that it uses. 0 is no limit.
        confinement: { memoryBytes: 0, cpuSeconds: 0, fileBytes: 1, files: 256, readable },
      },
      isConfined ? FORK_SERVER_LIBRARY : undefined,
    );
  const idle: Worker[] = [];
  const all = new Set<Worker>();
  /** @throws {Error} if a decoder fails, or decodes the same files differently */
  const answer = async (question: Question): Promise<Verification> => {
    const asked: Worker[] = [];
    const ask = async (): Promise<Verification> => {
      const worker = idle.pop() ?? (await start());
      all.add(worker);
      asked.push(worker);
      return (await worker.ask(question, TIMEOUT_MS)) as Verification;
    };
    try {
      const found = await ask();
      // Another process repeats what did not pass, so that a faulty decoder is not mistaken for a faulty result.
      const again = found.passed ? found : await ask();
      if (!isDeepStrictEqual(found, again))
        throw new Error(`it disagrees with itself: ${found.reason}, then ${again.reason ?? 'no difference'}`);
      idle.push(...asked);
      return found;
    } catch (error) {
      for (const worker of asked) {
        worker.close();
        all.delete(worker);
      }
      throw error;
    }
  };
  return {
    async verify(question, input) {
      const found = await answer(question).catch((error: Error): never => {
        throw fileErrorFrom(error, 'NOT_VERIFIED', input, `the decoder failed: ${error.message}`);
      });
      if (found.passed) return found;
      const { picture, worst, reason } = found;
      const saved = picture && pictures && (await savePicture(picture, pictures, input).catch(whyNotSaved));
      const where = worst ? `, worst at ${worst.x}, ${worst.y}` : '';
      const why = `${reason}${where}${saved ? ` (${saved})` : ''}`;
      throw fileErrorFrom(undefined, 'NOT_VERIFIED', input, why);
    },
    close() {
      for (const worker of all) worker.close();
    },
  };
}

const whyNotSaved = (error: Error): string => `its picture cannot be written: ${systemReason(error)}`;

/** Maximum length of the name of a picture without extension, in UTF-16 units of up to 3 bytes. A name has at most 255 bytes. */
const MAX_PICTURE_NAME = 80;

/** Writes the picture of the worst place, expected beside found. Returns its path. */
async function savePicture(picture: string, folder: string, input: string): Promise<string> {
  await createFolders(folder);
  const name = input.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(-MAX_PICTURE_NAME);
  const path = join(folder, `${name}.webp`);
  await writeFile(path, Buffer.from(picture, 'base64'));
  return path;
}
