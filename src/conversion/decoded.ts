/** @module Reads the PNG that an external program has decoded an input to. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/index.ts';
import { splitFrames } from '../images/png-frames.ts';
import { copyExifToText } from '../images/png-text.ts';

/**
 * Inspects a decoded image: its actual size, its profile and its frames. Writes each frame to a separate file.
 *
 * @param image properties from the header of the input
 * @param output name of the PNG in `folder`
 * @param config frames beyond its limits are counted, but not written
 * @param keepsMetadata whether the result keeps the metadata of the image
 * @throws {Error} with the code of the failed system call, if the program has written no PNG, or a link with its name or the name
 *   of a frame
 */
export async function readDecoded(
  image: ImageInfo,
  folder: string,
  output: string,
  config: Config,
  keepsMetadata: boolean,
): Promise<ImageInfo> {
  const {
    width,
    height,
    profile,
    deep,
    flat,
    hasIgnoredFrames: animated,
  } = await inspect(join(folder, output), 'png');
  if (keepsMetadata && image.metadata?.includes('exif')) await copyExifToText(join(folder, output));
  const maxFrames = Math.min(config.MAX_FRAMES, config.MAX_TOTAL_PIXELS / ((width ?? 1) * (height ?? 1)));
  const frames = animated ? await splitFrames(folder, output, maxFrames) : undefined;
  const { deep: _deep, hasIgnoredFrames: _ignored, hasUncountedFrames: _uncounted, ...rest } = image;
  return {
    ...rest,
    ...(width !== undefined && height !== undefined && { width, height }),
    ...(profile && (profile !== 'none' || !(image.declaredColour || image.profileFile)) && { profile }),
    ...(deep && { deep }),
    ...(flat && { flat }),
    // djxl 0.7 writes 16 bits with wrong pixels where 8 were requested.
    ...(image.unevenDepth && deep && { unreadable: 'uneven-jxl' }),
    ...(image.type !== 'jxl' && image.hasIgnoredFrames && { hasIgnoredFrames: true }),
    decoded: frames?.files ?? [output],
    ...(frames && { animation: frames.animation }),
  };
}
