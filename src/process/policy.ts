/** @module Checks the policy and the seccomp filters, grants rights, and tests enforcement. */
import { hash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ASSETS_DIR } from '../folders.ts';
import { StartupError } from '../tables/errors.ts';
import { CommandError, PROBE_TIMEOUT_MS, type RunCommand } from './command.ts';
import { listLength, type MagickLimits } from './runner.ts';
import type { Magick } from './toolchain.ts';

/** Files of `assets/` that confine the tools. A damaged one must not lead to a weaker sandbox. */
const PROTECTIONS = [
  'ImageMagick/policy.xml',
  ...['allow-list', 'deny-list'].map((list) => `seccomp/${list}.${process.arch}.bpf`),
];

/**
 * Compares the files in `assets/` that confine the tools with their digests in `SHA256SUMS`.
 *
 * @throws {StartupError} if one is missing, empty or different
 */
export async function assertProtections(assets: string): Promise<void> {
  const sums = await readFile(join(assets, 'SHA256SUMS'), 'utf8').catch(() => '');
  const lines = sums.split('\n');
  for (const name of PROTECTIONS) {
    const bytes = await readFile(join(assets, name)).catch(() => undefined);
    if (bytes && lines.includes(`${hash('sha256', bytes)}  ${name}`)) continue;
    throw new StartupError(
      `${join(assets, name)} is missing, damaged or changed, so images cannot be converted safely: install imagemill again.`,
    );
  }
}

/** Permission to use a coder, by its canonical name. */
export interface Grant {
  readonly coder: string;
  readonly rights: 'read' | 'write' | 'read|write';
}

/** Last line of a policy. */
const END = '</policymap>';

/**
 * Copies the policy to a new folder, and adds rights at its end, since the last matching rule
 * applies. ImageMagick reads both: without the copy, the original still denies all else.
 */
export async function writePolicy(to: string, coders: readonly Grant[]): Promise<void> {
  const policy = await readFile(join(ASSETS_DIR, 'ImageMagick/policy.xml'), 'utf8');
  if (!policy.includes(END)) throw new Error(`the policy in ${ASSETS_DIR} does not end with ${END}`);
  // A module has the name of its coder. Version 6 does not load a module that is only readable.
  const rules = coders.flatMap(({ coder, rights }) => [
    rule('module', 'read|write', coder),
    rule('coder', rights, coder),
  ]);
  await mkdir(join(to, 'ImageMagick'), { recursive: true });
  await writeFile(join(to, 'ImageMagick/policy.xml'), policy.replace(END, rules.join('') + END));
}

const rule = (domain: string, rights: string, pattern: string): string =>
  `  <policy domain="${domain}" rights="${rights}" pattern="${pattern}"/>\n`;

/** PNG of one grey pixel. */
export const ONE_PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==',
  'base64',
);
/** Lines of `-list resource`, in versions 6 and 7, if the policy and the environment apply. */
const expectedLimits = (limits: MagickLimits): RegExp[] => [
  new RegExp(`^\\s*Width: (?:${limits.side}|${(limits.side / 1000).toPrecision(3)}K)P$`, 'm'),
  /^\s*Disk: 0B$/m,
  new RegExp(`^\\s*List length: ${listLength(limits.frames)}B$`, 'm'),
];

/**
 * Checks whether ImageMagick enforces the policy of `run`, and has these limits. It fails open:
 * without a readable policy, it silently applies only that of the system. So this function runs it
 * three times, in an empty folder: with an operation that only the policy of the service forbids,
 * with one that it permits, and with a listing of its limits.
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
    probe('PNG:in', 'BMP3:allowed.bmp'),
    probe('-list', 'resource'),
  ]);
  return (
    forbidden.status === 'rejected' &&
    forbidden.reason instanceof CommandError &&
    forbidden.reason.reason === 'exit' &&
    (allowed.status === 'fulfilled' || !magick.writes.has('BMP3')) &&
    limits.status === 'fulfilled' &&
    expectedLimits(toolLimits).every((limit) => limit.test(limits.value.stdout))
  );
}
