/** @module Combines WebPs of one image to an animation (RFC 9649, sections 2.5 to 2.7). */
import { open } from 'node:fs/promises';
import { littleEndian, OPEN_FLAGS, WindowReader } from '../containers/file.ts';
import { riffChunks } from '../containers/parts.ts';
import { countBytes, type FileRange, type Piece } from '../containers/pieces.ts';
import type { Size } from '../image-info.ts';
import { NO_BLEND, readWebp, WEBP_FLAGS } from '../webp.ts';
import { CombineError, type FrameTiming } from './combiner.ts';

/** Chunks with the pixels of an image. */
const PIXELS = ['ALPH', 'VP8 ', 'VP8L'];
/** Maximum size of the content of a file: a length of 32 bits, which must be even. */
const MAX_RIFF_BYTES = 2 ** 32 - 10;

interface Frame extends Size {
  readonly alpha: boolean;
  readonly chunks: readonly FileRange[];
}

/** Combines WebPs of one image and one size, whose pixels are not encoded again. */
export async function combineWebp(
  paths: readonly string[],
  { delayMs, loopCount }: FrameTiming,
): Promise<Piece[]> {
  const frames: Frame[] = [];
  for (const path of paths) frames.push(await readFrame(path));
  const { width = 0, height = 0 } = frames[0] ?? {};
  if (frames.some((frame) => frame.width !== width || frame.height !== height))
    throw new CombineError('WebPs of different sizes');
  const size = [littleEndian(width - 1, 3), littleEndian(height - 1, 3)];
  const alpha = frames.some((frame) => frame.alpha) ? WEBP_FLAGS.alpha : 0;
  const content = [
    ...chunk('VP8X', [Buffer.of(WEBP_FLAGS.animation | alpha, 0, 0, 0), ...size]),
    ...chunk('ANIM', [Buffer.alloc(4), littleEndian(loopCount, 2)]),
    ...frames.flatMap(({ chunks }) => {
      // Without the flag, the pixels before a frame would show through.
      const head = [Buffer.alloc(6), ...size, littleEndian(delayMs, 3), Buffer.of(NO_BLEND)];
      return chunk('ANMF', [...head, ...chunks]);
    }),
  ];
  const bytes = 4 + countBytes(content);
  if (bytes > MAX_RIFF_BYTES) throw new CombineError(`a WebP of ${bytes} bytes`, true);
  return [Buffer.concat([Buffer.from('RIFF'), littleEndian(bytes, 4), Buffer.from('WEBP')]), ...content];
}

/** Returns a chunk of an even number of bytes. */
const chunk = (name: string, content: readonly Piece[]): Piece[] => [
  Buffer.concat([Buffer.from(name), littleEndian(countBytes(content), 4)]),
  ...content,
];

async function readFrame(path: string): Promise<Frame> {
  await using file = await open(path, OPEN_FLAGS);
  const { width = 0, height = 0, pixels } = await readWebp(new WindowReader(file));
  const { size } = await file.stat();
  const chunks: FileRange[] = [];
  for await (const { name, start, end } of riffChunks(new WindowReader(file)))
    if (PIXELS.includes(name) && end <= size) chunks.push({ path, from: start, to: end });
  if (width === 0 || height === 0 || chunks.length === 0) throw new CombineError(`${path} has no image`);
  return { width, height, alpha: pixels?.alpha === true, chunks };
}
