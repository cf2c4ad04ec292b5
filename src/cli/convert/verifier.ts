/** @module Verifies results in confined processes. */
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { createFolders, systemReason } from '../../files/system.ts';
import { ASSETS_DIR, FORK_SERVER_LIBRARY, VERIFY_WORKER } from '../../folders.ts';
import { LARGE_PAGES } from '../../process/runner.ts';
import { startWorker, type Worker } from '../../process/start.ts';
import type { Verification, VerifyRequest } from '../../regress/verifiable.ts';
import { findDecoders } from '../context.ts';
import { fileError, type OutputJob } from './converter.ts';

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
 * @param jobs number of concurrent conversions, and maximum number of workers
 * @param pictures folder for pictures of the largest differences, if any
 * @param memory folder for working files in memory, if any
 */
export async function createVerifier(
  engine: ConversionEngine,
  jobs: number,
  pictures: string | undefined,
  memory?: string,
) {
  const start = await createStarter(engine, memory);
  const all = new Set<Promise<Worker>>();
  const add = (): Promise<Worker> => {
    const worker = start();
    worker.catch(() => {}); // the request to it fails with the same error
    all.add(worker);
    return worker;
  };
  const remove = (worker: Promise<Worker>): void => {
    all.delete(worker);
    worker.then(({ close }) => close()).catch(() => {});
  };
  const idle = [add()]; // starts beside the first conversion
  const limit = pLimit(1);
  let waits = 0;
  /** @throws {Error} if a decoder fails, or decodes the same files differently */
  const verifyInWorker = async (request: VerifyRequest): Promise<Verification> => {
    const used: Promise<Worker>[] = [];
    const attempt = async (): Promise<Verification> => {
      const worker = idle.pop() ?? add();
      used.push(worker);
      return (await (await worker).send(request, TIMEOUT_MS)) as Verification;
    };
    try {
      const found = await attempt();
      // Another process repeats what did not pass: the decoder can be faulty, not the result.
      const again = found.passed ? found : await attempt();
      if (!isDeepStrictEqual(found, again))
        throw new Error(`it disagrees with itself: ${found.reason}, then ${again.reason ?? 'no difference'}`);
      idle.push(...used);
      return found;
    } catch (error) {
      used.forEach(remove);
      throw error;
    }
  };
  return {
    /**
     * @param job names the source in messages, and the result in the name of the picture
     * @throws {FileError} NOT_VERIFIED
     */
    async verify(request: VerifyRequest, { input, output }: Pick<OutputJob, 'input' | 'output'>) {
      // A worker starts in the time of two photos, so only if results wait one after another.
      waits = limit.pendingCount > 0 ? waits + 1 : 0;
      if (waits > 1 && limit.concurrency < jobs) limit.concurrency += 1;
      const found = await limit(verifyInWorker, request).catch((error: Error): never => {
        throw fileError('NOT_VERIFIED', input, `the decoder failed: ${error.message}`);
      });
      if (found.passed) return found;
      const { picture, worst, reason } = found;
      const saved = picture && pictures && (await savePicture(picture, pictures, output).catch(whyNotSaved));
      const where = worst ? `, worst at ${worst.x}, ${worst.y}` : '';
      const why = `${reason}${where}${saved ? ` (${saved})` : ''}`;
      throw fileError('NOT_VERIFIED', input, why);
    },
    close(): void {
      all.forEach(remove);
    },
  };
}

/** Returns a function that starts a worker, confined if this machine can. */
async function createStarter(
  engine: ConversionEngine,
  memory: string | undefined,
): Promise<() => Promise<Worker>> {
  const root = await engine.workspaces.root();
  const folder = join(root, 'verify');
  await mkdir(folder, { recursive: true });
  const isConfined = engine.layers.files === 'landlock' && existsSync(FORK_SERVER_LIBRARY);
  const own = [
    dirname(ASSETS_DIR),
    findDecoders('--verify'),
    dirname(dirname(process.execPath)),
    root,
    ...(memory ? [memory] : []),
    ...READABLE,
  ];
  const readable = (await Promise.all(own.map((path) => realpath(path).catch(() => [])))).flat();
  return () =>
    startWorker(
      {
        args: [process.execPath, '--max-old-space-size=2048', VERIFY_WORKER],
        env: {
          PATH: '/usr/bin:/bin',
          HOME: '/nonexistent',
          LC_ALL: 'C.UTF-8',
          TMPDIR: folder,
          ...LARGE_PAGES,
        },
        cwd: folder,
        outputs: [],
        // V8 reserves address space far beyond the memory that it uses. 0 is no limit.
        confinement: { memoryBytes: 0, cpuSeconds: 0, fileBytes: 1, files: 256, readable },
      },
      isConfined ? FORK_SERVER_LIBRARY : undefined,
    );
}

const whyNotSaved = (error: Error): string => `its picture cannot be written: ${systemReason(error)}`;

/**
 * Maximum length of the name of a result in that of its picture, in UTF-16 units of up to 3 bytes.
 * A name has at most 255 bytes.
 */
const MAX_NAME = 70;

/**
 * Writes the picture of the largest difference: what was expected, beside what was found.
 *
 * @returns its path, which is different for each result
 */
async function savePicture(picture: string, folder: string, output: string): Promise<string> {
  await createFolders(folder);
  const name = output.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(-MAX_NAME);
  const path = join(folder, `${name}-${hash('sha256', output).slice(0, 8)}.webp`);
  await writeFile(path, Buffer.from(picture, 'base64'));
  return path;
}
