/** @module The image of a watermark: how it is read, and its limits. */
import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { ImageInfo, Page } from '../../images/image-info.ts';
import { detectType, inspect } from '../../images/index.ts';
import { ServiceError, serviceError } from '../../tables/errors.ts';
import { type InputType, MAX_WATERMARK } from '../../tables/formats.ts';
import type { WatermarkFile } from '../context.ts';
import type { ConvertOptions } from '../plan/types.ts';
import { unsupportedType } from './store.ts';

/** Name of the watermark in messages. */
export const WATERMARK_LABEL = 'The watermark';

/** Returns options with a watermark, if there is one. */
export function withWatermark(options: ConvertOptions, watermark: WatermarkFile | undefined): ConvertOptions {
  if (!watermark) return options;
  const { type, sha256, place } = watermark;
  return { ...options, watermark: { type, sha256, place } };
}

/**
 * Reads a watermark, which must not change while it is used, and checks it by its header.
 *
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
export function assertSize({ width = 0, height = 0 }: Pick<Page, 'width' | 'height'>): void {
  if (width * height > MAX_WATERMARK.pixels) throw tooLarge();
}

/** @throws {ServiceError} WATERMARK_TOO_LARGE */
export function assertPixels({ type, width = 0, height = 0, pages = [] }: ImageInfo): void {
  const sizes = type === 'pdf' || type === 'svg' ? [] : [{ width, height }, ...pages.slice(0, 1)];
  for (const size of sizes) assertSize(size);
}

/** Returns the error of a watermark that is being received: it has limits of its own. */
export const toWatermarkError = (error: unknown): unknown =>
  error instanceof ServiceError && error.code === 'FILE_TOO_LARGE' ? tooLarge() : error;
