/** @module Writes a file from bytes in memory and ranges of other files, which are not loaded. */
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { OPEN_FLAGS, readRange } from './file.ts';

/** Bytes of a file, from one offset to another. */
export interface FileRange {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

/** Part of a file to write. */
export type Piece = Buffer | FileRange;

/** Returns the bytes of pieces. */
export const countBytes = (pieces: readonly Piece[]): number =>
  pieces.reduce((sum, piece) => sum + ('path' in piece ? piece.to - piece.from : piece.length), 0);

/**
 * Writes pieces to a new file.
 *
 * @throws {Error} of the file system; the reason of the signal
 */
export async function writePieces(
  path: string,
  pieces: readonly Piece[],
  signal: AbortSignal,
): Promise<void> {
  const output = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  await pipeline(readPieces(pieces), output, { signal });
}

/** Yields the bytes of pieces in blocks. */
export async function* readPieces(pieces: readonly Piece[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if (!('path' in piece)) {
      yield piece;
      continue;
    }
    await using file = await open(piece.path, OPEN_FLAGS);
    yield* readRange(file, piece.from, piece.to);
  }
}
