import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import { createWorkspaces } from '../../files/workspace.ts';
import type { OutputType } from '../../formats.ts';
import { ONE_PIXEL } from '../../process/policy-check.ts';
import { createRedisClient, type RedisConnection } from '../../redis-client.ts';
import type { Check } from './check.ts';
import type { DoctorReport } from './collect.ts';
import { missingScripts, SCRIPTS } from './fonts.ts';

/** What shows only when it is tried: a conversion, letters, room on disk, a connection. */

export async function conversion({ engine: mill, policyHolds }: DoctorReport): Promise<Check[]> {
  const name = 'conversion';
  if (mill instanceof Error) {
    const told =
      policyHolds === false || /^(?:SANDBOX|TEMP_DIR|MAGICK_BIN|RSVG_BIN|EXTRA_)/.test(mill.message); // in rows of their own
    return told ? [] : [{ name, state: 'fail', found: mill.message }];
  }
  if (!mill.toolchain.magick) return [];
  try {
    const formats = mill.capabilities.outputs.filter((format) => mill.capabilities.supports('png', format));
    const times = await Promise.all(formats.map((format) => convertPixel(mill, format)));
    const ms = Math.round(Math.max(...times));
    return [{ name, state: 'ok', found: `one pixel to ${formats.join(', ')}: ${ms} ms at most` }];
  } catch (error) {
    const found = `one pixel of PNG cannot be converted: ${(error as Error).message}`;
    return [{ name, state: 'fail', found }];
  }
}

/** @returns how long it took, in milliseconds */
async function convertPixel(mill: ConversionEngine, format: OutputType): Promise<number> {
  const workspace = await mill.workspaces.open();
  try {
    const folder = await workspace.folder('pixel');
    await writeFile(join(folder, INPUT_FILE), ONE_PIXEL);
    const source = { folder, type: 'png', label: 'The pixel' } as const;
    const options = { format, quality: 80, stripMetadata: true };
    return (await mill.convert(source, options, new AbortController().signal)).convertedMs;
  } finally {
    await workspace.remove();
  }
}

export async function fonts({ engine: mill }: DoctorReport): Promise<Check[]> {
  if (mill instanceof Error || !mill.capabilities.supports('svg', 'bmp')) return [];
  try {
    const missing = await missingScripts(mill);
    const namesOf = (scripts: typeof missing) => scripts.map(({ name }) => name).join(', ');
    const drawn = namesOf(SCRIPTS.filter((script) => !missing.includes(script)));
    if (missing.length === 0) return [{ name: 'fonts', state: 'ok', found: `SVG text in ${drawn}` }];
    const found = `SVG text in ${drawn || 'no script'}; only boxes for ${namesOf(missing)}`;
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    return [{ name: 'fonts', state: 'warn', found, advice: [`apt install ${[...packages].join(' ')}`] }];
  } catch (error) {
    return [{ name: 'fonts', state: 'warn', found: `no text could be drawn: ${(error as Error).message}` }];
  }
}

/** A file takes room once as it is received, and about as much again for its result. */
const ROOM_FACTOR = 2;

/** Room for one request of as many and as large files as are allowed; for a single file at the very least. */
export async function workingFiles({ config }: DoctorReport): Promise<Check[]> {
  const { TEMP_DIR, MAX_FILE_BYTES, MAX_BATCH_FILES } = config;
  const name = 'TEMP_DIR';
  const workspaces = createWorkspaces(TEMP_DIR);
  try {
    await workspaces.root();
    const free = await workspaces.free();
    if (free === undefined) return [{ name, state: 'ok', found: `${TEMP_DIR}, with room that nobody tells` }];
    const file = ROOM_FACTOR * MAX_FILE_BYTES;
    const batch = MAX_BATCH_FILES * file;
    const found = `${TEMP_DIR}, ${mebibytes(free)} free`;
    if (free >= batch) return [{ name, state: 'ok', found }];
    const wanted = `a full batch takes ${mebibytes(batch)} (MAX_BATCH_FILES × MAX_FILE_BYTES × ${ROOM_FACTOR})`;
    return [{ name, state: free < file ? 'fail' : 'warn', found, advice: [`make room: ${wanted}`] }];
  } catch (error) {
    const found = `${TEMP_DIR} cannot be written: ${(error as Error).message}`;
    return [{ name, state: 'fail', found, advice: ['set TEMP_DIR to a folder that can'] }];
  } finally {
    await workspaces.close();
  }
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;

const PAGE = fileURLToPath(new URL('../../../dist/web/index.html', import.meta.url));

export function page(): Check[] {
  if (existsSync(PAGE)) return [{ name: 'web page', state: 'ok', found: 'built' }];
  return [{ name: 'web page', state: 'warn', found: 'not built', advice: ['npm run build'] }];
}

export async function counters({ config: { REDIS_URL } }: DoctorReport): Promise<Check[]> {
  if (REDIS_URL === undefined) return [];
  const name = 'REDIS_URL';
  let client: RedisConnection | undefined;
  try {
    client = createRedisClient(REDIS_URL, () => {});
    await client.connect();
    await client.ping();
    return [{ name, state: 'ok', found: 'answers' }];
  } catch (error) {
    const found = `no answer: ${(error as Error).message}; each instance counts alone`;
    return [{ name, state: 'warn', found, advice: ['start it, or correct REDIS_URL'] }];
  } finally {
    if (client?.isOpen) client.destroy();
  }
}
