import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { ALL_OUTPUT_TYPES } from '../formats.ts';
import { type MatrixSource, toMatrix } from './matrix.ts';
import { RESULTS, resultPath } from './record.ts';
import type { Recording, Row } from './recording.ts';

/** A recording on disk: a folder with baseline.json and the results, or one JSON file with figures alone. */

const FILE = 'baseline.json';
/** Begins the name of a folder for results, of which there is no baseline yet. */
const STAGING_PREFIX = 'unfinished-';
/** Changes when older files cannot be read any more. */
const LAYOUT = 1;

/** A baseline cannot be read; the message says which and why. */
export class BaselineError extends Error {
  override readonly name = 'BaselineError';
}

/** Names lead into the baseline's own folder, whoever wrote them. */
const below = z
  .string()
  .refine((name) => name.split(/[/\\]/).every((part) => !['', '.', '..'].includes(part)));

const facts = z.object({
  width: z.number(),
  height: z.number(),
  frames: z.number(),
  delays: z.array(z.number()).exactOptional(),
  plays: z.number().exactOptional(),
  alpha: z.boolean(),
  depth: z.number().exactOptional(),
  profile: z.string().exactOptional(),
  metadata: z.array(z.string()).exactOptional(),
});

const schema = z.object({
  layout: z.literal(LAYOUT, 'it was written by another version of imagemill: record anew'),
  tools: z.record(z.string(), z.string()),
  at: z.string().optional(),
  matrix: z.unknown(),
  /** Each once: most images are converted by the same commands as another. */
  commands: z.array(z.string()),
  rows: z.array(
    z.object({
      image: below,
      case: below,
      format: z.enum(ALL_OUTPUT_TYPES),
      input: z.string(),
      commands: z.array(z.number()),
      refused: z.object({ status: z.number(), message: z.string() }).optional(),
      result: z
        .object({
          bytes: z.number(),
          digest: z.string().optional(),
          ms: z.number().optional(),
          notes: z.array(z.string()),
          figures: z.object({ facts, pixels: z.string(), fingerprints: z.array(z.string()) }).optional(),
        })
        .optional(),
    }),
  ),
});

/**
 * Makes room for the results of a new baseline, beside those of an older one, which stays until this one is whole.
 *
 * @returns a folder in it, to be removed when nothing comes of it
 * @throws BaselineError when something else is there
 */
export async function stageBaseline(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const found = (await readdir(folder)).filter((name) => !name.startsWith(STAGING_PREFIX));
  if (found.length > 0 && !found.includes(FILE)) {
    throw new BaselineError(`${folder} holds something that is no baseline: it is left alone`);
  }
  const room = await mkdtemp(join(folder, STAGING_PREFIX));
  await mkdir(join(room, RESULTS));
  return room;
}

/** Puts the results that are in such a room in the place of what an older baseline left. */
export async function commitBaseline(folder: string, room: string): Promise<void> {
  await rm(join(folder, FILE), { force: true });
  await rm(join(folder, RESULTS), { recursive: true, force: true });
  await rename(join(room, RESULTS), join(folder, RESULTS));
}

/**
 * @param path a folder, which has the results already; or for figures a file
 * @param withPictures whether it is the former
 */
export async function writeBaseline(
  path: string,
  recording: Recording,
  withPictures: boolean,
): Promise<void> {
  const { tools, at, matrix } = recording;
  const commands = [...new Set(recording.rows.flatMap((row) => row.commands))];
  const rows = recording.rows.map((row) => ({
    ...(withPictures ? row : withoutVolatile(row)),
    commands: row.commands.map((command) => commands.indexOf(command)),
  }));
  // A line a row, so that a review shows what changed.
  const lines = (items: readonly unknown[]) =>
    `[\n${items.map((item) => JSON.stringify(item)).join(',\n')}\n]`;
  const head = JSON.stringify({ layout: LAYOUT, tools, at, matrix: matrix.source }, null, 1).slice(0, -2);
  const text = `${head},\n "commands": ${lines(commands)},\n "rows": ${lines(rows)}\n}\n`;
  const file = withPictures ? join(path, FILE) : path;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

/** Formats whose files hold the time when they were made: their digest is another one each time. */
const VOLATILE_KEYS: readonly string[] = ['pdf'];

/** Without what is another each time, so that a file in version control changes only when a result does. */
function withoutVolatile({ result, ...row }: Row): Row {
  if (!result) return row;
  const { ms: _, digest, ...rest } = result;
  return { ...row, result: { ...rest, ...(!VOLATILE_KEYS.includes(row.format) && { digest }) } };
}

/** @throws BaselineError when there is none, or it makes no sense */
export async function readBaseline(path: string): Promise<Recording> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
  try {
    const read = schema.parse(JSON.parse(await readFile(isFolder ? join(path, FILE) : path, 'utf8')));
    const rows = read.rows.map((row) => ({
      ...row,
      commands: row.commands.map((at) => read.commands[at] ?? ''),
    }));
    return {
      tools: read.tools,
      at: read.at,
      matrix: toMatrix(read.matrix as MatrixSource),
      rows,
      open: (row) => (isFolder && row.result ? readFile(resultPath(path, row)) : undefined),
    };
  } catch (cause) {
    throw new BaselineError(`${path} is no baseline: ${reason(cause)}`, { cause });
  }
}

function reason(error: unknown): string {
  if (!(error instanceof z.ZodError)) return (error as Error).message;
  const [{ path, message }] = error.issues as [z.core.$ZodIssue];
  return `${path.join('.')}: ${message}`;
}
