/** @module Checks that run something: a conversion, a search for fonts, a connection to Redis. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisConnection } from '../../base/redis-client.ts';
import { formatBytes } from '../../base/text.ts';
import { convertOnePixel } from '../../conversion/limits/health-check.ts';
import { isInMemory } from '../../files/system.ts';
import { Workspaces } from '../../files/workspace.ts';
import { WEB_APP_DIR } from '../../folders.ts';
import { CommandError } from '../../process/command.ts';
import { createProbeRunner } from '../../process/runner.ts';
import { bytesOfBatch, DISK_SPACE_FACTOR } from '../context.ts';
import { type CheckResult, type DoctorReport, fail, ok, warn } from './collect.ts';

/** Converts a pixel to every output format. */
export async function conversion({ engine, policyEnforced }: DoctorReport): Promise<CheckResult[]> {
  const name = 'conversion';
  if (engine instanceof Error) {
    const isReportedElsewhere = policyEnforced === false || engine.setting !== undefined;
    return isReportedElsewhere ? [] : [fail(name, engine.message)];
  }
  if (!engine.toolchain.magick) return [];
  try {
    const formats = engine.capabilities.outputs.filter((format) =>
      engine.capabilities.supports('png', format),
    );
    const times = await Promise.all(formats.map((format) => convertOnePixel(engine, format)));
    const ms = Math.round(Math.max(...times));
    return [ok(name, `one pixel to ${formats.join(', ')}: at most ${ms} ms`)];
  } catch (error) {
    return [fail(name, `a PNG of one pixel cannot be converted: ${(error as Error).message}`)];
  }
}

/** Scripts, a letter of each, and the Debian package of a font that has this letter. */
const SCRIPTS = [
  { name: 'Latin', letter: 'g', debianPackage: 'fonts-dejavu-core' },
  { name: 'Cyrillic', letter: 'Ж', debianPackage: 'fonts-dejavu-core' },
  { name: 'Greek', letter: 'Ω', debianPackage: 'fonts-dejavu-core' },
  { name: 'Chinese', letter: '永', debianPackage: 'fonts-noto-cjk' },
  { name: 'emoji', letter: '😀', debianPackage: 'fonts-noto-color-emoji' },
];

type Script = (typeof SCRIPTS)[number];

const TIMEOUT_MS = 10_000;

/** Asks fontconfig, from which librsvg gets its fonts, for a font for each script. */
export async function fonts({ toolchain, config }: DoctorReport): Promise<CheckResult[]> {
  if (!toolchain.rsvg) return [];
  const run = createProbeRunner(config.PATH);
  const hasFont = ({ letter }: Script): Promise<boolean> => {
    const args = ['--quiet', `:charset=${letter.codePointAt(0)?.toString(16)}`];
    return run({ file: 'fc-list', args, cwd: '/', timeoutMs: TIMEOUT_MS }).then(
      () => true,
      (error) => {
        // Exit status of --quiet if no font matches.
        if (error instanceof CommandError && error.exitCode === 1) return false;
        throw error;
      },
    );
  };
  try {
    const found = await Promise.all(SCRIPTS.map(hasFont));
    const missing = SCRIPTS.filter((_, at) => !found[at]);
    const namesOf = (scripts: readonly Script[]) => scripts.map(({ name }) => name).join(', ');
    const rendered = namesOf(SCRIPTS.filter((_, at) => found[at]));
    if (missing.length === 0) return [ok('fonts', `SVG text in ${rendered}`)];
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    const text = `SVG text in ${rendered || 'no script'}; boxes instead of ${namesOf(missing)}`;
    return [warn('fonts', text, `apt install ${[...packages].join(' ')}`)];
  } catch (error) {
    return [warn('fonts', `not checked: ${(error as Error).message}`, 'apt install fontconfig')];
  }
}

/** Files for which a private service needs disk space: its batches can exceed most disks. */
const PRIVATE_FILES = 10;

/** Checks for disk space for a batch (otherwise warns), and for one file (otherwise fails). */
export async function workingFiles({ config }: DoctorReport): Promise<CheckResult[]> {
  const { TEMP_DIR } = config;
  const name = 'TEMP_DIR';
  const workspaces = new Workspaces(TEMP_DIR);
  try {
    await workspaces.root();
    const free = await workspaces.free();
    if (free === undefined) return [ok(name, `${TEMP_DIR}, free space unknown`)];
    const file = DISK_SPACE_FACTOR * config.MAX_FILE_BYTES;
    const [files, count, needed] =
      config.ACCESS === 'private'
        ? [`${PRIVATE_FILES} files need`, PRIVATE_FILES, PRIVATE_FILES * file]
        : ['a full batch needs', 'MAX_BATCH_FILES', bytesOfBatch(config)];
    const factors = `${count} × MAX_FILE_BYTES × ${DISK_SPACE_FACTOR}`;
    const found = `${TEMP_DIR}, ${isInMemory(TEMP_DIR) ? 'in memory, ' : ''}${formatBytes(free)} free`;
    if (free >= needed) return [ok(name, found)];
    const requirement = `${files} ${formatBytes(needed)} (${factors})`;
    const failOrWarn = free < file ? fail : warn;
    return [failOrWarn(name, found, `free disk space: ${requirement}`)];
  } catch (error) {
    const found = `${TEMP_DIR} is not writable: ${(error as Error).message}`;
    return [fail(name, found, 'set TEMP_DIR to a writable folder')];
  } finally {
    await workspaces.close();
  }
}

/** Checks whether the web page has been built. */
export function webPage(): CheckResult[] {
  const isBuilt = existsSync(join(WEB_APP_DIR, 'index.html'));
  return [isBuilt ? ok('web page', 'built') : warn('web page', 'not built', 'npm run build')];
}

/** Checks whether the server at REDIS_URL responds. */
export async function redis({ config: { REDIS_URL } }: DoctorReport): Promise<CheckResult[]> {
  if (REDIS_URL === undefined) return [];
  const name = 'REDIS_URL';
  let client: RedisConnection | undefined;
  const { CONNECT_TIMEOUT_MS, createRedisClient, withTimeout } = await import('../../base/redis-client.ts');
  try {
    client = createRedisClient(REDIS_URL, () => {});
    await withTimeout(client.connect(), CONNECT_TIMEOUT_MS);
    await withTimeout(client.ping(), CONNECT_TIMEOUT_MS);
    return [ok(name, 'responds')];
  } catch (error) {
    const found = `no response: ${(error as Error).message}; each instance counts requests on its own`;
    return [warn(name, found, 'start Redis, or correct REDIS_URL')];
  } finally {
    if (client?.isOpen) client.destroy();
  }
}
