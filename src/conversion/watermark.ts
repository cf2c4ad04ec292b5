/** @module Makes the watermark of a result: converts its image to PNG at the size at which it is put on the picture. */
import { hash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError, serviceError } from '../errors.ts';
import { workFiles } from '../files/workspace.ts';
import { type InputType, MAX_WATERMARK } from '../formats.ts';
import type { ImageInfo, Page, Size } from '../images/image-info.ts';
import { detectType, inspect } from '../images/index.ts';
import { maxFolderBytes, planResult } from './admit.ts';
import { inspectInput, ownInput } from './inspect.ts';
import { invalidOutputError } from './output/tool-errors.ts';
import { planAnew } from './plan/index.ts';
import { nameFile } from './plan/step.ts';
import { type ConversionJob, type ConvertOptions, INPUT_FILE, type PlannedJob } from './plan/types.ts';
import { type WatermarkBox, watermarkBoxes, watermarkFile } from './plan/watermark.ts';
import { unsupportedType } from './store.ts';
import { type Attempt, attemptEach, valuesOf } from './targets.ts';
import type { ConversionInput, ConversionResult, RunningConversion, WatermarkFile } from './types.ts';

/** Name of the watermark in messages. */
export const WATERMARK_LABEL = 'The watermark';

/** Converts a file to its results. */
type Run = (
  planned: readonly Attempt<PlannedJob>[],
  running: RunningConversion,
) => Promise<readonly Attempt<Pick<ConversionResult, 'path' | 'width' | 'height'>>[]>;

/**
 * Makes the watermark of each result, and plans the result again for its size. An error of the watermark is that of all results.
 *
 * @throws {ServiceError} that names the watermark
 */
export async function watermarkEach(
  jobs: readonly Attempt<PlannedJob>[],
  running: RunningConversion,
  run: Run,
): Promise<readonly Attempt<PlannedJob>[]> {
  if (!running.source.watermark) return jobs;
  const sizes = new Map<string, Size[]>();
  for (const job of valuesOf(jobs)) sizes.set(job.suffix, await makeWatermarks(job, running, run));
  return attemptEach(jobs, running, (job) => {
    const { watermark } = job.options;
    if (!watermark) return job;
    const made = { ...watermark, sizes: sizes.get(job.suffix) };
    return planAnew(job, { options: { ...job.options, watermark: made } });
  });
}

/**
 * Makes the watermark of a result, at the size for each frame or page, in the folder of the picture. The time limit is that of the
 * picture.
 *
 * @returns the sizes of the watermarks, in the order of `watermarkBoxes`
 */
async function makeWatermarks(job: ConversionJob, running: RunningConversion, run: Run): Promise<Size[]> {
  const sizes: Size[] = [];
  const boxes = watermarkBoxes(job);
  if (boxes.length === 0) throw invalidOutputError('a picture without a size', running.source);
  for (const [at, box] of boxes.entries()) {
    const target = join(running.source.folder, nameFile(watermarkFile(at), job.suffix));
    const make = (box: WatermarkBox) => makeWatermark(box, target, running, run);
    // A drawing fills a box. So whether its own size fits has to be tried first.
    const own = box.enlarge ? undefined : await make({ enlarge: false });
    sizes.push(own && own.width <= (box.width ?? own.width) ? own : await make(box));
  }
  return sizes;
}

/** The image is converted in a folder of its own, which is removed. A repair changes a copy of it. */
async function makeWatermark(
  box: WatermarkBox,
  target: string,
  running: RunningConversion,
  run: Run,
): Promise<Size> {
  const { source } = running;
  const { path, type, sha256 } = source.watermark as WatermarkFile;
  const folder = `${source.folder}.watermark`;
  const files = workFiles(folder);
  await files.mkdir(folder, { mode: 0o700 });
  await copyFile(path, join(folder, INPUT_FILE), constants.COPYFILE_FICLONE);
  const { client } = source;
  const input: ConversionInput = {
    ...{ folder, type, sha256, label: WATERMARK_LABEL },
    ...(client !== undefined && { client }),
  };
  await using own = ownInput(input, MAX_WATERMARK.bytes);
  const options: ConvertOptions = {
    ...{ format: 'png', quality: 100, metadata: 'none', frames: 'first', pages: 'first' },
    ...box,
  };
  const image = await inspectInput(input, [options], own.repairs, running);
  assertPixels(image);
  const planned = planResult(image, options, '', { ...running, source: input });
  if (!box.enlarge) for (const { result } of planned.fittings) assertSize(result);
  const [made] = await run([{ name: '', suffix: '', value: planned }], {
    ...{ ...running, source: input, repairs: own.repairs, onError: 'fail' },
    maxBytes: maxFolderBytes([planned], own.bytes, running.config),
  });
  if (!made || 'error' in made) throw made?.error ?? serviceError('CORRUPT_IMAGE', WATERMARK_LABEL, type);
  const { width = 1, height = 1 } = made.value;
  await files.rename(made.value.path, target);
  return { width, height };
}

/** Returns options with a watermark, if there is one. */
export function withWatermark(options: ConvertOptions, watermark: WatermarkFile | undefined): ConvertOptions {
  if (!watermark) return options;
  const { type, sha256, place } = watermark;
  return { ...options, watermark: { type, sha256, place } };
}

/**
 * Reads a watermark of this machine, and checks it by its header. The file must not change as long as it is used.
 *
 * @param types types of images to accept
 * @throws {ServiceError} that names the watermark
 * @throws {Error} of the file system
 */
export async function readWatermark(path: string, types: readonly InputType[]): Promise<WatermarkFile> {
  if ((await stat(path)).size > MAX_WATERMARK.bytes) throw tooLarge();
  const bytes = await readFile(path);
  if (bytes.length === 0) throw serviceError('EMPTY_FILE', WATERMARK_LABEL);
  const detected = await detectType(bytes, true);
  const type = types.find((accepted) => accepted === detected);
  if (type === undefined) throw unsupportedType(WATERMARK_LABEL, detected, types);
  assertPixels(await inspect(path, type));
  return { path, type, sha256: hash('sha256', bytes) };
}

const tooLarge = (): ServiceError =>
  serviceError('WATERMARK_TOO_LARGE', WATERMARK_LABEL, MAX_WATERMARK.bytes, MAX_WATERMARK.pixels);

/** @throws {ServiceError} WATERMARK_TOO_LARGE */
function assertSize({ width = 0, height = 0 }: Pick<Page, 'width' | 'height'>): void {
  if (width * height > MAX_WATERMARK.pixels) throw tooLarge();
}

/** @throws {ServiceError} WATERMARK_TOO_LARGE */
function assertPixels({ type, width = 0, height = 0, pages = [] }: ImageInfo): void {
  const sizes = type === 'pdf' || type === 'svg' ? [] : [{ width, height }, ...pages.slice(0, 1)];
  for (const size of sizes) assertSize(size);
}

/** Returns the error of a watermark that is being received: it has limits of its own. */
export const toWatermarkError = (error: unknown): unknown =>
  error instanceof ServiceError && error.code === 'FILE_TOO_LARGE' ? tooLarge() : error;
