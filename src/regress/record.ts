/** @module Converts images in all cases of a matrix, and records the results. */
import { hash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import pLimit from 'p-limit';
import { z } from 'zod';
import { isInvalidName } from '../base/text.ts';
import { ALL_OUTPUT_TYPES, type InputType } from '../tables/formats.ts';
import { type Backend, type BackendResult, detectImageType, type SourceImage } from './backends.ts';
import { decode } from './image/codec.ts';
import { digestOf, fingerprintsOf } from './image/fingerprint.ts';
import { type DecodedImage, imageMetadata } from './image/image.ts';
import type { Case, TestMatrix } from './matrix.ts';

export interface RecordOptions {
  readonly images: readonly SourceImage[];
  readonly matrix: TestMatrix;
  readonly converter: Backend;
  /** Folder for the result files. If undefined, the recording holds fingerprints instead. */
  readonly folder?: string | undefined;
  /** Number of conversions per image and case, for the median of the time. */
  readonly repeat: number;
  readonly signal: AbortSignal;
  /** Called after each conversion with the number of all. */
  readonly progress: (image: string, all: number) => void;
}

/**
 * Lists the images below a folder, sorted by name. Detects images by content, not by extension, and
 * skips other files.
 *
 * @param baseline skipped if it is below the folder
 * @throws {Error} if a file cannot be read, or its name is not UTF-8
 */
export async function listImages(
  folder: string,
  types: readonly InputType[],
  baseline?: string,
): Promise<SourceImage[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  const baselinePrefix = baseline && relative(folder, baseline) + sep;
  const images: SourceImage[] = [];
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name);
    const subpath = relative(folder, path);
    if (baselinePrefix && subpath.startsWith(baselinePrefix)) continue;
    if (isInvalidName(path))
      throw new Error(`${path}: the name is not valid UTF-8. Rename it, for example with convmv.`);
    const type = await detectImageType(path);
    if (type && types.includes(type)) images.push({ name: subpath.split(sep).join('/'), path });
  }
  return images.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Converts every image in every case of the matrix. All conversions have ended when this function
 * returns or throws.
 *
 * @throws {RegressError} if the backend fails
 * @throws the signal's reason if it aborts
 */
export async function record(options: RecordOptions): Promise<Recording> {
  const { images, matrix, converter, folder } = options;
  const jobs = images.flatMap((image) =>
    matrix.cases
      .filter(({ name }) => matrix.thresholds(image.name, name) !== undefined)
      .map((testCase) => ({ image, testCase })),
  );
  const rows: Row[] = [];
  // The first error aborts all conversions, and is thrown when they have ended.
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const limit = pLimit(converter.concurrency);
  const recorded = jobs.map(({ image, testCase }, index) =>
    limit(async () => {
      signal.throwIfAborted();
      rows[index] = await recordOne(image, testCase, { ...options, signal });
      options.progress(image.name, jobs.length);
    }).catch((error) => failed.abort(error)),
  );
  await Promise.all(recorded);
  signal.throwIfAborted();
  return {
    tools: converter.tools,
    at: folder && new Date().toISOString(),
    matrix,
    rows,
    open: (row) => (folder && row.result ? readFile(resultPath(folder, row)) : undefined),
  };
}

async function recordOne(image: SourceImage, testCase: Case, options: RecordOptions): Promise<Row> {
  const { converter, folder, repeat, signal } = options;
  const results: BackendResult[] = [];
  for (let time = 0; time < repeat; time += 1) results.push(await converter.convert(image, testCase, signal));
  const first = results[0] as BackendResult;
  const row = {
    image: image.name,
    case: testCase.name,
    format: testCase.options.format,
    input: digest(await readFile(image.path)),
    commands: first.commands,
  };
  if ('refused' in first) return { ...row, refused: first.refused };
  const { bytes, notes } = first.made;
  const times = results.flatMap((one) => ('made' in one ? [one.made.ms] : []));
  const result = { bytes: bytes.length, digest: digest(bytes), ms: median(times), notes };
  if (!folder) {
    // A result that no independent decoder reads has no fingerprints.
    const decoded = await decode(bytes, row.format).catch(() => undefined);
    return { ...row, result: { ...result, figures: decoded && fingerprintResult(decoded) } };
  }
  const path = resultPath(folder, row);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  return { ...row, result };
}

/** Summarizes an image for a baseline of fingerprints. */
export function fingerprintResult(image: DecodedImage): ResultFingerprint {
  return { facts: image.facts, pixels: digestOf(image), fingerprints: fingerprintsOf(image) };
}

/** Name of the folder for result files in a baseline. */
export const RESULTS = 'results';

/** Returns the path of a result file in a baseline: one folder per image, one file per case. */
export function resultPath(folder: string, { image, case: name, format }: Row): string {
  return join(folder, RESULTS, image, `${name}.${format}`);
}

/** Returns the first 128 bits of the SHA-256 of a file, in hex. */
export const digest = (bytes: Buffer): string => hash('sha256', bytes).slice(0, 32);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Results of every image in every case, with the result files or with fingerprints. */
export interface Recording {
  /** Versions of the tools, or the address and version of a server. */
  readonly tools: Readonly<Record<string, string>>;
  /** Time in ISO 8601. Not of fingerprints, whose file changes only if a result does. */
  readonly at?: string | undefined;
  readonly matrix: TestMatrix;
  readonly rows: readonly Row[];
  /**
   * Reads the result file of a row; undefined if it was not kept.
   *
   * @throws {AlteredResultError}
   */
  open(row: Row): Promise<Buffer> | undefined;
}

/** The result file of a row is not the recorded one any more. */
export class AlteredResultError extends Error {
  override readonly name = 'AlteredResultError';
}

/** Relative name inside the baseline's folder, which prevents path traversal. */
const safeName = z
  .string()
  .refine((name) => name.split(/[/\\]/).every((part) => !['', '.', '..'].includes(part)));

const resultFingerprint = z.object({
  facts: imageMetadata,
  /** Digest of the decoded pixels: the first 128 bits of SHA-256, in hex. */
  pixels: z.string(),
  /** Base64, one per frame; see image/fingerprint.ts. */
  fingerprints: z.array(z.string()).readonly(),
});

const result = z.object({
  bytes: z.number(),
  /** Digest of the file. Undefined in fingerprints of formats that contain their creation time. */
  digest: z.string().optional(),
  /** Conversion time in ms, the median if repeated. */
  ms: z.number().optional(),
  notes: z.array(z.string()).readonly(),
  figures: resultFingerprint.optional(),
});

export const rowSchema = z.object({
  image: safeName,
  case: safeName,
  format: z.enum(ALL_OUTPUT_TYPES),
  /** Digest of the input image: the first 128 bits of SHA-256, in hex. */
  input: z.string(),
  commands: z.array(z.string()).readonly(),
  result: result.optional(),
  refused: z.object({ status: z.number(), message: z.string() }).optional(),
});

export type Row = Readonly<z.infer<typeof rowSchema>>;
export type Result = Readonly<z.infer<typeof result>>;
/** What a baseline of fingerprints keeps of a result. */
export type ResultFingerprint = Readonly<z.infer<typeof resultFingerprint>>;

/** Returns the key by which rows of two recordings are matched. */
export const rowKey = ({ image, case: name }: Pick<Row, 'image' | 'case'>): string => `${image}\0${name}`;
