import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandFailed, type Run } from './run.ts';
import type { Magick } from './toolchain.ts';

/** One grey pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==';
/** A limit that only our policy sets, as version 6 and 7 print it. */
const OUR_LIMIT = /^\s*Area: 50MP$/m;
const ANSWER_MS = 10_000;

/**
 * Whether ImageMagick obeys the policy that {@link Run} brings with it. It fails open: a
 * policy it cannot find or read leaves only the system's rules, in silence. So the very
 * program that will run is asked for something that only our policy forbids, for something
 * that the system's may forbid, and for its limits.
 *
 * @param folder an empty folder of the caller's
 */
export async function policyHolds(magick: Magick, run: Run, folder: string): Promise<boolean> {
  await writeFile(join(folder, 'in'), Buffer.from(PNG, 'base64'));
  const ask = (...args: string[]) => run({ file: magick.path, args, cwd: folder, timeoutMs: ANSWER_MS });
  const [forbidden, allowed, limits] = await Promise.allSettled([
    ask('xc:red', 'PNG:forbidden.png'),
    ask('PNG:in', 'PDF:allowed.pdf'),
    ask('-list', 'resource'),
  ]);
  return (
    forbidden.status === 'rejected' &&
    forbidden.reason instanceof CommandFailed &&
    forbidden.reason.reason === 'exit' &&
    (allowed.status === 'fulfilled' || !magick.writes.has('PDF')) &&
    limits.status === 'fulfilled' &&
    OUR_LIMIT.test(limits.value.stdout)
  );
}
