/** @module Repairs that are made only after ImageMagick has rejected a file. */

import { join } from 'node:path';
import type { RepairContext } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { completePalette } from '../images/png.ts';
import { isPaletteError, isProfileError } from './output/tool-errors.ts';
import { INPUT_FILE } from './plan/types.ts';

/**
 * Repairs an image, so that it can be converted again.
 *
 * @param folder folder of the input
 * @returns undefined if no repair avoids the error
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function repairAfterError(
  error: Error,
  image: ImageInfo,
  folder: string,
  context: RepairContext,
): Promise<ImageInfo | undefined> {
  // librsvg uses no profile, and its input is not in the folder any more.
  if (image.type === 'svg') return undefined;
  if (isProfileError(error)) return { ...image, profile: 'unusable' };
  const isRepaired =
    image.type === 'png' &&
    isPaletteError(error) &&
    (await completePalette(join(folder, INPUT_FILE), context));
  return isRepaired ? image : undefined;
}
