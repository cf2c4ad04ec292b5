/** @module Checks that run something: a conversion, fonts, disk space, a connection to Redis. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { convertMade } from '../../conversion/health-check.ts';
import { isInMemory } from '../../files/system.ts';
import { createWorkspaces } from '../../files/workspace.ts';
import { WEB_APP_DIR } from '../../folders.ts';
import { ONE_PIXEL } from '../../process/policy.ts';
import type { RedisConnection } from '../../redis-client.ts';
import { formatBytes } from '../../text.ts';
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
    const pixel = { type: 'png', label: 'The pixel', bytes: ONE_PIXEL } as const;
    const times = await Promise.all(
      formats.map((format) => convertMade(engine, pixel, { format }, (result) => result.convertedMs)),
    );
    const ms = Math.round(Math.max(...times));
    return [ok(name, `one pixel to ${formats.join(', ')}: at most ${ms} ms`)];
  } catch (error) {
    return [fail(name, `a PNG of one pixel cannot be converted: ${(error as Error).message}`)];
  }
}

/** Checks which scripts can be rendered in SVG text. */
export async function fonts({ engine }: DoctorReport): Promise<CheckResult[]> {
  if (engine instanceof Error || !engine.capabilities.supports('svg', 'bmp')) return [];
  try {
    const missing = await missingScripts(engine);
    const namesOf = (scripts: typeof missing) => scripts.map(({ name }) => name).join(', ');
    const rendered = namesOf(SCRIPTS.filter((script) => !missing.includes(script)));
    if (missing.length === 0) return [ok('fonts', `SVG text in ${rendered}`)];
    const found = `SVG text in ${rendered || 'no script'}; boxes instead of ${namesOf(missing)}`;
    const packages = new Set(missing.map(({ debianPackage }) => debianPackage));
    return [warn('fonts', found, `apt install ${[...packages].join(' ')}`)];
  } catch (error) {
    return [warn('fonts', `SVG text cannot be rendered: ${(error as Error).message}`)];
  }
}

/** Checks for disk space for the largest possible batch (otherwise warns), and for one file (otherwise fails). */
export async function workingFiles({ config }: DoctorReport): Promise<CheckResult[]> {
  const { TEMP_DIR } = config;
  const name = 'TEMP_DIR';
  const workspaces = createWorkspaces(TEMP_DIR);
  try {
    await workspaces.root();
    const free = await workspaces.free();
    if (free === undefined) return [ok(name, `${TEMP_DIR}, free space unknown`)];
    const file = DISK_SPACE_FACTOR * config.MAX_FILE_BYTES;
    const batch = bytesOfBatch(config);
    const found = `${TEMP_DIR}, ${isInMemory(TEMP_DIR) ? 'in memory, ' : ''}${formatBytes(free)} free`;
    if (free >= batch) return [ok(name, found)];
    const requirement = `a full batch needs ${formatBytes(batch)} (MAX_BATCH_FILES × MAX_FILE_BYTES × ${DISK_SPACE_FACTOR})`;
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
  const { CONNECT_TIMEOUT_MS, createRedisClient, withTimeout } = await import('../../redis-client.ts');
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

/** A script, with a letter that is rendered and the Debian package of a font that has it. */
interface Script {
  readonly name: string;
  readonly letter: string;
  readonly debianPackage: string;
}

/** Scripts that are tested. */
const SCRIPTS: readonly Script[] = [
  { name: 'Latin', letter: 'g', debianPackage: 'fonts-dejavu-core' },
  { name: 'Cyrillic', letter: 'Ж', debianPackage: 'fonts-dejavu-core' },
  { name: 'Greek', letter: 'Ω', debianPackage: 'fonts-dejavu-core' },
  { name: 'Chinese', letter: '永', debianPackage: 'fonts-noto-cjk' },
  { name: 'emoji', letter: '😀', debianPackage: 'fonts-noto-color-emoji' },
];
/** Unassigned code points: no font has a glyph for them, so librsvg renders a box with four or six digits. */
const UNASSIGNED_CODEPOINTS = ['\u0378', '\u{10fffd}'];

/**
 * Size of the row of one letter, in pixels. Each letter has its own row, with empty space on both sides: without any font,
 * librsvg 2.60 moves boxes to the left or right at random.
 */
const ROW = { width: 256, height: 64 };
/** Position of a letter in its row. */
const [LETTER_X, BASELINE_Y] = [96, 48];

/** Returns the scripts whose letters are rendered as boxes or not at all. */
async function missingScripts(engine: ConversionEngine): Promise<Script[]> {
  const bytes = createSvg([...SCRIPTS.map(({ letter }) => letter), ...UNASSIGNED_CODEPOINTS]);
  const drawing = { type: 'svg', label: 'The drawing', bytes } as const;
  const bmp = await convertMade(engine, drawing, { format: 'bmp' }, ({ path }) => readFile(path));
  const boxes = UNASSIGNED_CODEPOINTS.map((_, at) => readOutline(bmp, SCRIPTS.length + at));
  return SCRIPTS.filter((_, at) => ['', FRAME, ...boxes].includes(readOutline(bmp, at)));
}

function createSvg(letters: readonly string[]): string {
  const texts = letters.map(
    (letter, at) => `<text x="${LETTER_X}" y="${at * ROW.height + BASELINE_Y}">${letter}</text>`,
  );
  const height = letters.length * ROW.height;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${ROW.width}" height="${height}" font-size="40"
    font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>${texts.join('')}</svg>`;
}

/** Outline of every box that is a frame. Frames count as equal, even if their antialiasing differs. */
const FRAME = 'frame';

/** Bytes per pixel of a 24-bit BMP, and the offsets of its fields for the pixel data offset and the height. */
const BYTES_PER_PIXEL = 3;
const [PIXELS_AT, HEIGHT_AT] = [10, 22];
/** Bytes of a line of pixels: a multiple of four. */
const STRIDE = (ROW.width * BYTES_PER_PIXEL + 3) & ~3;

/**
 * Returns the outermost pixels of a letter as text. Returns an empty string if there are none, or if they touch the edge of
 * the image, which letters of a font never do. The digits in a box are inside it and have no effect.
 */
function readOutline(bmp: Buffer, letter: number): string {
  // The lines of a BMP are stored from the bottom to the top.
  const lastLine = bmp.readInt32LE(HEIGHT_AT) - 1 - letter * ROW.height;
  // From 0 for white to 255 for black.
  const darknessAt = (x: number, y: number): number =>
    255 - (bmp[bmp.readUInt32LE(PIXELS_AT) + (lastLine - y) * STRIDE + x * BYTES_PER_PIXEL] as number);
  const [allColumns, allRows] = [[...Array(ROW.width).keys()], [...Array(ROW.height).keys()]];
  const rows = allRows.filter((y) => allColumns.some((x) => darknessAt(x, y) > 0));
  const columns = allColumns.filter((x) => allRows.some((y) => darknessAt(x, y) > 0));
  const [top, bottom, left, right] = [rows[0], rows.at(-1), columns[0], columns.at(-1)];
  if (top === undefined || bottom === undefined || left === undefined || right === undefined) return '';
  if (left === 0 || right === ROW.width - 1) return '';
  const topAndBottom = columns.flatMap((x) => [darknessAt(x, top), darknessAt(x, bottom)]);
  const leftAndRight = rows.flatMap((y) => [darknessAt(left, y), darknessAt(right, y)]);
  const edge = [...topAndBottom, ...leftAndRight];
  return edge.every((darkness) => darkness > 0) ? FRAME : edge.join();
}
