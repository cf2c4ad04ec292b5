import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError, type RunCommand } from './command.ts';
import { listLength, type MagickLimits } from './environment.ts';
import type { Magick } from './toolchain.ts';

/** One grey pixel, as PNG. */
export const ONE_PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==',
  'base64',
);
/** Limits that only our policy and our environment set together, as versions 6 and 7 print them. */
const expectedLimits = (limits: MagickLimits): RegExp[] => [
  /^\s*Width: 16(?:\.4K|384)P$/m,
  /^\s*Disk: 0B$/m,
  new RegExp(`^\\s*List length: ${listLength(limits)}B$`, 'm'),
];
const PROBE_TIMEOUT_MS = 10_000;

/**
 * Whether ImageMagick obeys the policy that {@link RunCommand} brings with it. It fails open: a
 * policy it cannot find or read leaves only the system's rules, in silence. So the very
 * program that will run is asked for something that only our policy forbids, for something
 * that the system's may forbid, and for its limits.
 *
 * @param folder an empty folder of the caller's
 */
export async function isPolicyEnforced(
  magick: Magick,
  run: RunCommand,
  folder: string,
  toolLimits: MagickLimits,
): Promise<boolean> {
  await writeFile(join(folder, 'in'), ONE_PIXEL);
  const ask = (...args: string[]) =>
    run({ file: magick.path, args, cwd: folder, timeoutMs: PROBE_TIMEOUT_MS });
  const [forbidden, allowed, limits] = await Promise.allSettled([
    ask('xc:red', 'PNG:forbidden.png'),
    ask('PNG:in', 'PDF:allowed.pdf'),
    ask('-list', 'resource'),
  ]);
  return (
    forbidden.status === 'rejected' &&
    forbidden.reason instanceof CommandError &&
    forbidden.reason.reason === 'exit' &&
    (allowed.status === 'fulfilled' || !magick.writes.has('PDF')) &&
    limits.status === 'fulfilled' &&
    expectedLimits(toolLimits).every((limit) => limit.test(limits.value.stdout))
  );
}
