import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { type InputType, OUTPUTS } from '../formats.ts';
import type { Attempt, Backend, Image } from './backends/backend.ts';
import { typeOf } from './backends/local-backend.ts';
import { decode } from './image/codec.ts';
import { digestOf, fingerprintsOf } from './image/fingerprint.ts';
import type { DecodedImage } from './image/image.ts';
import type { Case, Matrix } from './matrix.ts';
import type { Figures, Recording, Row } from './recording.ts';

/** Converts every image of a folder in every case of a matrix. */

export interface RecordOptions {
  readonly images: readonly Image[];
  readonly matrix: Matrix;
  readonly converter: Backend;
  /** Where results are kept; without one there are figures instead. */
  readonly folder?: string | undefined;
  /** How often each is converted, for the time that it takes. */
  readonly repeat: number;
  /** Ends it before its time. */
  readonly signal: AbortSignal;
  /** Is told how many are done. */
  readonly progress: (done: number, all: number) => void;
}

/**
 * All images below a folder, in order, whatever they are called; what is no image is passed over.
 *
 * @param types what counts as an image
 * @param baseline may be in that folder, and is passed over, too
 */
export async function imagesIn(
  folder: string,
  types: readonly InputType[],
  baseline?: string,
): Promise<Image[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  const own = baseline && relative(folder, baseline) + sep;
  const images: Image[] = [];
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name);
    const below = relative(folder, path);
    if (own && below.startsWith(own)) continue;
    const type = await typeOf(path);
    if (type && types.includes(type)) images.push({ name: below.split(sep).join('/'), path });
  }
  return images.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * When it throws, nothing of it is under way any more.
 *
 * @throws NoConverter when the converter is lost on the way; the signal's reason when it fires
 */
export async function record(options: RecordOptions): Promise<Recording> {
  const { images, matrix, converter, folder } = options;
  const jobs = images.flatMap((image) =>
    matrix.cases
      .filter(({ name }) => matrix.thresholds(image.name, name) !== undefined)
      .map((how) => ({ image, how })),
  );
  const rows: Row[] = [];
  const lost = new AbortController();
  const signal = AbortSignal.any([options.signal, lost.signal]);
  let next = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < jobs.length && !signal.aborted; at = next++) {
      const { image, how } = jobs[at] as (typeof jobs)[number];
      try {
        rows[at] = await recordOne(image, how, { ...options, signal });
        options.progress(++done, jobs.length);
      } catch (error) {
        lost.abort(error);
      }
    }
  };
  await Promise.all(Array.from({ length: converter.concurrency }, work));
  signal.throwIfAborted();
  return {
    tools: converter.tools,
    ...(folder && { at: new Date().toISOString() }),
    matrix,
    rows,
    open: (row) => (folder && row.result ? readFile(resultPath(folder, row)) : undefined),
  };
}

async function recordOne(image: Image, how: Case, options: RecordOptions): Promise<Row> {
  const { converter, folder, repeat, signal } = options;
  const attempts: Attempt[] = [];
  for (let time = 0; time < repeat; time += 1) attempts.push(await converter.convert(image, how, signal));
  const attempt = attempts[0] as Attempt;
  const row = {
    image: image.name,
    case: how.name,
    format: how.options.format,
    input: digest(await readFile(image.path)),
    commands: attempt.commands,
  };
  if ('refused' in attempt) return { ...row, refused: attempt.refused };
  const { bytes, notes } = attempt.made;
  const times = attempts.flatMap((one) => ('made' in one ? [one.made.ms] : []));
  const result = { bytes: bytes.length, digest: digest(bytes), ms: median(times), notes };
  if (!folder) {
    // What no independent decoder reads has no figures.
    const picture = await decode(bytes, row.format).catch(() => undefined);
    return { ...row, result: { ...result, ...(picture && { figures: figuresOf(picture) }) } };
  }
  const path = resultPath(folder, row);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  return { ...row, result };
}

/** What a baseline without pictures keeps of one. */
export function figuresOf(picture: DecodedImage): Figures {
  return { facts: picture.facts, pixels: digestOf(picture), fingerprints: fingerprintsOf(picture) };
}

/** The folder of the results in that of a baseline. */
export const RESULTS = 'results';

/** Where a baseline keeps a result: a folder an image, a file a case. */
export function resultPath(folder: string, { image, case: name, format }: Row): string {
  return join(folder, RESULTS, image, `${name}.${OUTPUTS[format].extension}`);
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex').slice(0, 32);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
