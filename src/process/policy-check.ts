import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError, type RunCommand } from './command.ts';
import { listLength, type MagickLimits } from './environment.ts';
import type { Magick } from './toolchain.ts';

/** @module Checks that ImageMagick enforces its policy. */

/** PNG of one grey pixel. */
export const ONE_PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==',
  'base64',
);
/** Lines of `-list resource`, in versions 6 and 7, when both the policy and the environment of the service apply. */
const expectedLimits = (limits: MagickLimits): RegExp[] => [
  /^\s*Width: 16(?:\.4K|384)P$/m,
  /^\s*Disk: 0B$/m,
  new RegExp(`^\\s*List length: ${listLength(limits)}B$`, 'm'),
];
const PROBE_TIMEOUT_MS = 10_000;

/**
 * Checks whether ImageMagick enforces the policy that `run` passes in its environment.
 *
 * ImageMagick fails open: when it cannot find or read a policy, it silently applies only the policy of the system. So
 * this function runs the program three times: with an operation that only the policy of the service forbids, with one
 * that the policy of the system may forbid, and with a listing of its limits.
 *
 * @param folder an empty folder, which receives the files of the check
 * @param toolLimits the limits that ImageMagick must report
 */
export async function isPolicyEnforced(
  magick: Magick,
  run: RunCommand,
  folder: string,
  toolLimits: MagickLimits,
): Promise<boolean> {
  await writeFile(join(folder, 'in'), ONE_PIXEL);
  const probe = (...args: string[]) =>
    run({ file: magick.path, args, cwd: folder, timeoutMs: PROBE_TIMEOUT_MS });
  const [forbidden, allowed, limits] = await Promise.allSettled([
    probe('xc:red', 'PNG:forbidden.png'),
    probe('PNG:in', 'PDF:allowed.pdf'),
    probe('-list', 'resource'),
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
