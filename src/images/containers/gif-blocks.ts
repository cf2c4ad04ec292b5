/** @module Blocks of a GIF (GIF89a specification, sections 15 to 26). */
import type { ByteReader } from './window-reader.ts';

/** Maximum number of frames to read: one more than the largest MAX_FRAMES. */
const MAX_FRAMES = 10_001;
/** Maximum number of blocks to read. `WindowReader` allows about half as many. */
const MAX_BLOCKS = 100_000;
/** Bytes to read at once, so that many small sub-blocks take no longer than a few large ones. */
const READ_BYTES = 16 * 1024;

/** Length of the header and the logical screen descriptor, and offset of its flags. */
const SCREEN_BYTES = 13;
const SCREEN_FLAGS_AT = 10;
/** First bytes of an image descriptor and of an extension. */
const IMAGE = 0x2c;
const EXTENSION = 0x21;
/** Length of an image descriptor, and offset of its flags. */
const DESCRIPTOR_BYTES = 10;
const FLAGS_AT = 9;
const EXTENSION_BYTES = 3;
/** Length of a loop extension up to its count, which is the longest start of a block that is read. */
const HEAD_BYTES = 19;

export interface GifBlock {
  /** `cut` is the place where the file ends within the start of a block, or without a trailer. */
  readonly name: 'image' | 'extension' | 'cut';
  readonly offset: number;
  /** Its first bytes, at most 19. Stays valid. */
  readonly head: Buffer;
  /** Offset of the first sub-block. In an image, the byte "LZW minimum code size" precedes it. */
  readonly data: number;
  /** Offset of the next block; undefined if the file ends before it. */
  readonly end: number | undefined;
}

/** Yields the blocks up to the trailer, an invalid block or the end of the file. */
export async function* gifBlocks(bytes: ByteReader): AsyncGenerator<GifBlock> {
  const [flags] = (await bytes.read(0, SCREEN_BYTES)).subarray(SCREEN_FLAGS_AT);
  if (flags === undefined) return;
  let offset: number | undefined = SCREEN_BYTES + colourTableLength(flags);
  for (let count = 0, frames = 0; count < MAX_BLOCKS && frames < MAX_FRAMES; count += 1) {
    const head = Buffer.from(await bytes.read(offset, HEAD_BYTES));
    const isImage = head[0] === IMAGE;
    if (head.length > 0 && !isImage && head[0] !== EXTENSION) return;
    if (head.length < (isImage ? DESCRIPTOR_BYTES : EXTENSION_BYTES)) {
      yield { name: 'cut', offset, head, data: offset, end: undefined };
      return;
    }
    const data = isImage
      ? offset + DESCRIPTOR_BYTES + colourTableLength(head[FLAGS_AT] as number) + 1
      : offset + 2;
    const end = await walkSubBlocks(bytes, data);
    yield { name: isImage ? 'image' : 'extension', offset, head, data, end };
    if (end === undefined) return;
    if (isImage) frames += 1;
    offset = end;
  }
}

function colourTableLength(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

/**
 * Walks sub-blocks. Each has a length byte and that many bytes. Length 0 terminates them. The last sub-block of a truncated file
 * may be shorter than its length states.
 *
 * @param visit called with the offset and the content of each. The content is valid until the call returns.
 * @returns the offset after the terminator; undefined if the file ends before it
 */
export async function walkSubBlocks(
  bytes: ByteReader,
  from: number,
  visit?: (at: number, body: Buffer) => void,
): Promise<number | undefined> {
  for (let offset = from; ; ) {
    const piece = await bytes.read(offset, READ_BYTES);
    if (piece.length === 0) return undefined;
    let at = 0;
    while (at < piece.length) {
      const length = piece[at] as number;
      if (length === 0) return offset + at + 1;
      const end = at + 1 + length;
      if (end > READ_BYTES) break; // it continues in the next piece
      visit?.(offset + at, piece.subarray(at + 1, end));
      at = end;
    }
    offset += at;
  }
}
