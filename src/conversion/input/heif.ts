/** @module Repairs AVIF and HEIC. */
import { open } from 'node:fs/promises';
import { META_BYTES } from '../inspect/avif.ts';
import { findBox, parseBoxes, parseProperties } from '../inspect/heif-items.ts';
import { ROTATIONS } from '../inspect/heif-rotation.ts';

/** Offset of the major brand in an AVIF or HEIC (ISO/IEC 14496-12, section 4.3). */
const BRAND_AT = 8;

/** Major brands of sequences, and those of still images (ISO/IEC 23008-12, section 10; AVIF, section 6). */
const STILL_BRANDS = {
  avif: { sequences: ['avis'], still: 'avif' },
  heic: { sequences: ['hevc', 'hevx', 'msf1'], still: 'heic' },
} as const;

/** Marks a sequence as a still image: its primary image is converted, and older libheif reads no sequences. */
export async function rebrandSequence(path: string, type: keyof typeof STILL_BRANDS): Promise<typeof type> {
  const { sequences, still } = STILL_BRANDS[type];
  const file = await open(path, 'r+');
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, BRAND_AT);
    const brandName = buffer.toString('latin1');
    if (sequences.some((brand) => brand === brandName)) await file.write(still, BRAND_AT);
  } finally {
    await file.close();
  }
  return type;
}

/** Replaces every rotation and mirroring, in place, by a rotation of 0 degrees: the plan rotates the image. */
export async function removeRotation(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    const { buffer: head } = await file.read(Buffer.alloc(META_BYTES), 0, META_BYTES, 0);
    const meta = findBox(parseBoxes(head), 'meta')?.subarray(4);
    for (const { name, body } of parseProperties(findBox(parseBoxes(meta), 'iprp'))) {
      // The name of a box precedes its content.
      const at = body.byteOffset - head.byteOffset - name.length;
      if (ROTATIONS.includes(name) && body.length > 0) await file.write('irot\0', at, 'latin1');
    }
  } finally {
    await file.close();
  }
}
