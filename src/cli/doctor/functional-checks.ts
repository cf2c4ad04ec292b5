/** @module Checks that run something: a conversion, fonts, disk space, a connection to Redis. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import { createWorkspaces } from '../../files/workspace.ts';
import { WEB_APP_DIR } from '../../folders.ts';
import type { OutputType } from '../../formats.ts';
import { ONE_PIXEL } from '../../process/policy.ts';
import type { RedisConnection } from '../../redis-client.ts';
import type { Check } from './check.ts';
import type { DoctorReport } from './collect.ts';
import { missingScripts, SCRIPTS } from './fonts.ts';

/** Converts a pixel to every output format. */
export async function conversion({ engine, policyHolds }: DoctorReport): Promise<Check[]> {
  const name = 'conversion';
  if (engine instanceof Error) {
    const reported = policyHolds === false || engine.setting !== undefined; // reported by other checks
    return reported ? [] : [{ name, state: 'fail', found: engine.message }];
  }
  if (!engine.toolchain.magick) return [];
  try {
    const formats = engine.capabilities.outputs.filter((format) =>
      engine.capabilities.supports('png', format),
    );
    const times = await Promise.all(formats.map((format) => convertPixel(engine, format)));
    const ms = Math.round(Math.max(...times));
    return [{ name, state: 'ok', found: `one pixel to ${formats.join(', ')}: at most ${ms} ms` }];
  } catch (error) {
    const found = `a PNG of one pixel cannot be converted: ${(error as Error).message}`;
    return [{ name, state: 'fail', found }];
  }
}

/**
 * Converts a pixel.
 *
 * @returns the duration in milliseconds
 */
async function convertPixel(engine: ConversionEngine, format: OutputType): Promise<number> {
  const workspace = await engine.workspaces.open();
  try {
    const folder = await workspace.folder('pixel');
    await writeFile(join(folder, INPUT_FILE), ONE_PIXEL);
    const source = { folder, type: 'png', label: 'The pixel' } as const;
    const options = { format, quality: 80, stripMetadata: true };
    return (await engine.convert(source, options, new AbortController().signal)).convertedMs;
  } finally {
    await workspace.remove();
  }
}

/** Checks which scripts can be rendered in SVG text. */
export async function fonts({ engine }: DoctorReport): Promise<Check[]> {
  if (engine instanceof Error || !engine.capabilities.supports('svg', 'bmp')) return [];
  try {
    const missing = await missingScripts(engine);
    const namesOf = (scripts: typeof missing) => scripts.map(({ name }) => name).join(', ');
    const rendered = namesOf(SCRIPTS.filter((script) => !missing.includes(script)));
    if (missing.length === 0) return [{ name: 'fonts', state: 'ok', found: `SVG text in ${rendered}` }];
    const found = `SVG text in ${rendered || 'no script'}; boxes instead of ${namesOf(missing)}`;
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    return [{ name: 'fonts', state: 'warn', found, advice: [`apt install ${[...packages].join(' ')}`] }];
  } catch (error) {
    return [
      { name: 'fonts', state: 'warn', found: `SVG text cannot be rendered: ${(error as Error).message}` },
    ];
  }
}

/** Disk space per input byte: the input, and about as much for its result. */
const DISK_SPACE_FACTOR = 2;

/** Checks for disk space for the largest possible batch (otherwise warns), and for one file (otherwise fails). */
export async function workingFiles({ config }: DoctorReport): Promise<Check[]> {
  const { TEMP_DIR, MAX_FILE_BYTES, MAX_BATCH_FILES } = config;
  const name = 'TEMP_DIR';
  const workspaces = createWorkspaces(TEMP_DIR);
  try {
    await workspaces.root();
    const free = await workspaces.free();
    if (free === undefined) return [{ name, state: 'ok', found: `${TEMP_DIR}, free space unknown` }];
    const file = DISK_SPACE_FACTOR * MAX_FILE_BYTES;
    const batch = MAX_BATCH_FILES * file;
    const found = `${TEMP_DIR}, ${formatMebibytes(free)} free`;
    if (free >= batch) return [{ name, state: 'ok', found }];
    const requirement = `a full batch needs ${formatMebibytes(batch)} (MAX_BATCH_FILES × MAX_FILE_BYTES × ${DISK_SPACE_FACTOR})`;
    return [
      { name, state: free < file ? 'fail' : 'warn', found, advice: [`free disk space: ${requirement}`] },
    ];
  } catch (error) {
    const found = `${TEMP_DIR} is not writable: ${(error as Error).message}`;
    return [{ name, state: 'fail', found, advice: ['set TEMP_DIR to a writable folder'] }];
  } finally {
    await workspaces.close();
  }
}

const formatMebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;

/** Checks whether the web page has been built. */
export function webPage(): Check[] {
  if (existsSync(join(WEB_APP_DIR, 'index.html'))) return [{ name: 'web page', state: 'ok', found: 'built' }];
  return [{ name: 'web page', state: 'warn', found: 'not built', advice: ['npm run build'] }];
}

/** Checks whether the server at REDIS_URL responds. */
export async function redis({ config: { REDIS_URL } }: DoctorReport): Promise<Check[]> {
  if (REDIS_URL === undefined) return [];
  const name = 'REDIS_URL';
  let client: RedisConnection | undefined;
  const { CONNECT_TIMEOUT_MS, createRedisClient, withTimeout } = await import('../../redis-client.ts');
  try {
    client = createRedisClient(REDIS_URL, () => {});
    await withTimeout(client.connect(), CONNECT_TIMEOUT_MS);
    await withTimeout(client.ping(), CONNECT_TIMEOUT_MS);
    return [{ name, state: 'ok', found: 'responds' }];
  } catch (error) {
    const found = `no response: ${(error as Error).message}; each instance counts requests on its own`;
    return [{ name, state: 'warn', found, advice: ['start Redis, or correct REDIS_URL'] }];
  } finally {
    if (client?.isOpen) client.destroy();
  }
}
