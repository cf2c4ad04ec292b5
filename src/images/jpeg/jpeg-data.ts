/** @module Copies a JPEG with only the segments for decoding (ITU-T T.81, section B; T.871). */
import type { FileHandle } from 'node:fs/promises';
import { BLOCK_BYTES, type ByteReader, fileReader, readRange } from '../containers/file.ts';
import { JFIF_SEGMENT, START_OF_SCAN } from '../containers/parts.ts';

const START = Buffer.of(0xff, 0xd8);
const END = Buffer.of(0xff, 0xd9);
const END_OF_IMAGE = 0xd9;

/** Maximum number of segments to copy. A progressive JPEG has a hundred. More are cut off. */
const MAX_SEGMENTS = 10_000;

/** Markers of frame headers, tables, restart intervals and numbers of lines (T.81, table B.1). */
const isDecoded = (marker: number): boolean =>
  (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc8) || (marker >= 0xda && marker <= 0xdf);

/** Bytes of the segments that tell the colour space: of JFIF without thumbnail, and of Adobe. */
const COLOUR_SEGMENTS: Readonly<Record<number, { readonly name: string; readonly bytes: number }>> = {
  [JFIF_SEGMENT]: { name: 'JFIF\0', bytes: 12 },
  238: { name: 'Adobe', bytes: 12 },
};
/** Columns and rows of a thumbnail, at the end of a JFIF segment. */
const NO_THUMBNAIL = Buffer.of(0, 0);
/** Segments with EXIF and XMP, and with IPTC. */
const METADATA_MARKERS: readonly number[] = [0xe1, 0xed];

/**
 * Yields a JPEG without comments, profile, thumbnails, what follows its pixels, and, unless they
 * are kept, EXIF, XMP and IPTC. Tables and entropy-coded data stay as they are, and the end of the
 * image is added if it is missing.
 */
export async function* withoutSegments(file: FileHandle, keepsMetadata: boolean): AsyncGenerator<Buffer> {
  const bytes = fileReader(file);
  yield START;
  let at = START.length;
  for (let count = 0; count < MAX_SEGMENTS; count += 1) {
    at = await findMarker(bytes, at);
    const head = await bytes.read(at, 4);
    const marker = head[1];
    if (head.length < 4 || marker === END_OF_IMAGE) break;
    const offset = at + 4;
    const end = offset + Math.max(0, head.readUInt16BE(2) - 2);
    const colour = COLOUR_SEGMENTS[marker as number];
    if (isDecoded(marker as number) || (keepsMetadata && METADATA_MARKERS.includes(marker as number)))
      yield* readRange(file, at, end);
    else if (colour) yield* colourSegment(await bytes.read(offset, colour.bytes), marker as number);
    at = end;
    if (marker !== START_OF_SCAN) continue;
    const next = await findMarker(bytes, at);
    yield* readRange(file, at, next);
    at = next;
  }
  yield END;
}

function* colourSegment(body: Buffer, marker: number): Generator<Buffer> {
  const { name = '', bytes = 0 } = COLOUR_SEGMENTS[marker] ?? {};
  if (body.length < bytes || !body.toString('latin1').startsWith(name)) return;
  const content = marker === JFIF_SEGMENT ? Buffer.concat([body, NO_THUMBNAIL]) : body;
  yield Buffer.concat([Buffer.of(0xff, marker, 0, content.length + 2), content]);
}

/** Bytes to search first: most markers follow each other. */
const FIRST_BYTES = 16;

/**
 * Returns the offset of the next marker that has a length, or ends the image: not that of an
 * entropy-coded 0xFF, a restart marker or a fill byte. Returns that of the end of the file if there
 * is none.
 */
async function findMarker(bytes: ByteReader, from: number): Promise<number> {
  for (let start = from, length = FIRST_BYTES; ; length = BLOCK_BYTES) {
    const block = await bytes.read(start, length);
    const last = block.length - 1;
    for (let at = block.indexOf(0xff); at >= 0 && at < last; at = block.indexOf(0xff, at + 1))
      if (startsSegment(block[at + 1] as number)) return start + at;
    if (block.length < length) return start + block.length;
    start += last; // the marker can begin with the last byte
  }
}

const startsSegment = (marker: number): boolean =>
  marker >= 0xc0 && marker < 0xff && (marker < 0xd0 || marker > 0xd8);
