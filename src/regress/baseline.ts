/** @module Reads and writes recordings: a folder of results, or a JSON file of fingerprints. */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { createFolders, isReplaceable, replaceFile, systemReason } from '../files/system.ts';
import { type MatrixSource, RegressError, toMatrix } from './matrix.ts';
import {
  AlteredResultError,
  digest,
  RESULTS,
  type Recording,
  type Result,
  type Row,
  resultPath,
  rowSchema,
} from './record.ts';

const BASELINE_FILE = 'baseline.json';
/** Name prefix of a folder with the results of an unfinished baseline. */
const STAGING_PREFIX = 'unfinished-';
/** Start of the JSON file of every version. */
const FILE_START = '{\n "layout":';
/** Version of the file format. Increment it when older files become unreadable. */
const FORMAT_VERSION = 1;

const schema = z.object({
  layout: z.literal(FORMAT_VERSION, 'it was written by a different version of imagemill: record a new one'),
  tools: z.record(z.string(), z.string()),
  at: z.string().optional(),
  matrix: z.unknown(),
  /** Distinct commands; rows refer to them by index, since most images share their commands. */
  commands: z.array(z.string()),
  rows: z.array(rowSchema.extend({ commands: z.array(z.number()) })),
});

/**
 * Makes a new baseline of result files. An older baseline stays until the new one is complete.
 *
 * @param record records in a folder
 * @throws {RegressError} if the folder contains other files and no baseline
 */
export async function saveResults(
  folder: string,
  record: (staging: string) => Promise<Recording>,
): Promise<Recording> {
  await createFolders(folder);
  const found = (await readdir(folder)).filter((name) => !name.startsWith(STAGING_PREFIX));
  if (found.length > 0 && !found.includes(BASELINE_FILE))
    throw new RegressError(`${folder} contains files, but no baseline: it was not changed`);
  const staging = await mkdtemp(join(folder, STAGING_PREFIX));
  try {
    await mkdir(join(staging, RESULTS));
    const recording = await record(staging);
    await writeBaseline(join(staging, BASELINE_FILE), recording);
    // From here on, nothing is written, so that a full disk cannot interrupt the replacement.
    await rm(join(folder, BASELINE_FILE), { force: true });
    await rm(join(folder, RESULTS), { recursive: true, force: true });
    await rename(join(staging, RESULTS), join(folder, RESULTS));
    await rename(join(staging, BASELINE_FILE), join(folder, BASELINE_FILE));
    return recording;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * Makes a new baseline of fingerprints, which is one file.
 *
 * @throws {RegressError} if the file exists and is not a baseline
 */
export async function saveFingerprints(path: string, record: () => Promise<Recording>): Promise<Recording> {
  if (!(await isReplaceable(path, FILE_START)))
    throw new RegressError(`${path} is not a baseline: it was not changed`);
  const recording = await record();
  await writeBaseline(path, { ...recording, rows: recording.rows.map(withoutVolatile) });
  return recording;
}

async function writeBaseline(file: string, { tools, at, matrix, ...recording }: Recording): Promise<void> {
  const commands = [...new Set(recording.rows.flatMap((row) => row.commands))];
  const indexes = new Map(commands.map((command, index) => [command, index]));
  const rows = recording.rows.map((row) => ({
    ...row,
    commands: row.commands.map((command) => indexes.get(command)),
  }));
  // Write one row per line, so that a diff shows what changed.
  const lines = (items: readonly unknown[]) =>
    `[\n${items.map((item) => JSON.stringify(item)).join(',\n')}\n]`;
  const about = { layout: FORMAT_VERSION, tools, at, matrix: matrix.source };
  const head = JSON.stringify(about, null, 1).slice(0, -2);
  const text = `${head},\n "commands": ${lines(commands)},\n "rows": ${lines(rows)}\n}\n`;
  await createFolders(dirname(file));
  await replaceFile(file, text);
}

/** Formats that contain their creation time, so that the digest changes with each conversion. */
const VOLATILE_FORMATS: readonly string[] = ['pdf'];

/** Removes time and volatile digests, so that a file changes only if a result does. */
function withoutVolatile({ result, ...row }: Row): Row {
  if (!result) return row;
  const { ms: _, digest, ...rest } = result;
  const isVolatile = VOLATILE_FORMATS.includes(row.format);
  return { ...row, result: { ...rest, digest: isVolatile ? undefined : digest } };
}

/**
 * Reads a baseline from a folder or a file.
 *
 * @throws {RegressError} if it does not exist or is invalid
 */
export async function readBaseline(path: string): Promise<Recording> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
  const text = await readFile(isFolder ? join(path, BASELINE_FILE) : path, 'utf8').catch((cause) => {
    throw new RegressError(`${path} is not a baseline: ${systemReason(cause)}`, { cause });
  });
  try {
    const read = schema.parse(JSON.parse(text));
    const rows = read.rows.map((row) => ({
      ...row,
      commands: row.commands.map((index) => read.commands[index] ?? ''),
    }));
    return {
      tools: read.tools,
      at: read.at,
      matrix: toMatrix(read.matrix as MatrixSource),
      rows,
      open: (row) => (isFolder && row.result ? readResult(resultPath(path, row), row.result) : undefined),
    };
  } catch (cause) {
    throw new RegressError(`${path} is not a baseline: ${formatCause(cause)}`, { cause });
  }
}

/** @throws {AlteredResultError} if the file is missing, or has another digest */
async function readResult(path: string, result: Result): Promise<Buffer> {
  const bytes = await readFile(path).catch((error) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (bytes && digest(bytes) === (result.digest ?? digest(bytes))) return bytes;
  throw new AlteredResultError('the file in the baseline is missing or was altered');
}

function formatCause(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not JSON';
  if (!(error instanceof z.ZodError)) return (error as Error).message;
  const [{ path, message }] = error.issues as [z.core.$ZodIssue];
  return `${path.join('.')}: ${message}`;
}
