/** @module Stores colour profiles that ImageMagick does not find in the input as files that it can apply. */

import { createHash } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { declaredProfile } from '../colour/declared-profile.ts';
import type { ImageInfo } from '../plan/image-info.ts';
import { INPUT_FILE } from '../plan/types.ts';

/**
 * Writes the external profile of an image to the folder of its input.
 *
 * The name of the file depends on its content, because ImageMagick 7 remembers every profile by its name: a worker
 * would apply the profile of its first job to all others.
 *
 * @returns the image with the name of the file, if there is one
 */
export async function storeExternalProfile(folder: string, image: ImageInfo): Promise<ImageInfo> {
  const profile = await externalProfileOf(folder, image);
  if (!profile) return image;
  const profileFile = `${createHash('sha256').update(profile).digest('hex').slice(0, 32)}.icc`;
  await writeFile(join(folder, profileFile), profile);
  return { ...image, profileFile };
}

function externalProfileOf(
  folder: string,
  { declaredColour, externalProfile, type }: ImageInfo,
): Promise<Buffer | undefined> | undefined {
  if (declaredColour) return declaredProfile(declaredColour);
  return externalProfile && type === 'webp' ? webpProfile(join(folder, INPUT_FILE)) : undefined;
}

/** Maximum size of a profile to extract. The largest printer profiles have about 2 MiB. */
const MAX_PROFILE_BYTES = 4 * 1024 ** 2;

/** Reads the profile of an animated WebP, which ImageMagick ignores (RFC 9649, section 2.7). */
async function webpProfile(path: string): Promise<Buffer | undefined> {
  const file = await open(path);
  try {
    // A profile is the first chunk after VP8X.
    const { buffer: head } = await file.read(Buffer.alloc(38), 0, 38, 0);
    const length = head.readUInt32LE(34);
    if (head.toString('latin1', 30, 34) !== 'ICCP' || length > MAX_PROFILE_BYTES) return undefined;
    return (await file.read(Buffer.alloc(length), 0, length, 38)).buffer;
  } finally {
    await file.close();
  }
}
