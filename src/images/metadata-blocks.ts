/** @module Finds the blocks of EXIF, IPTC and XMP in a file. */
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { InputType } from '../tables/formats.ts';
import type { ByteReader, WindowReader } from './containers/file.ts';
import { TAG, TiffReader } from './containers/ifd.ts';
import { boxes, gifBlocks, jpegSegments, pngChunks, riffChunks } from './containers/parts.ts';
import { isXmp } from './gif.ts';
import { META_BYTES } from './heif/heif.ts';
import { metadataKindOf, metaIn, readItem } from './heif/heif-items.ts';
import type { MetadataKind } from './image-info.ts';
import { contentName, JXL_METADATA } from './jxl.ts';
import { kindOfChunk, readMetadataChunk } from './png/png-text.ts';

/** Maximum bytes of a block to read. XMP with a thumbnail has as many, the fields some hundred. */
const MAX_BLOCK_BYTES = 256 * 1024;

interface Block {
  readonly kind: MetadataKind;
  /** Returns undefined if it is too large or damaged. */
  readonly read: () => Promise<Buffer | undefined>;
}

/** A file to read: through a window for small reads, and directly for blocks. */
export interface Source {
  readonly window: WindowReader;
  readonly file: ByteReader;
}

/** Metadata in segments (EXIF 2.32, 4.7; XMP part 3, 1.1.3; IPTC in resources of Photoshop). */
export const SEGMENTS = [
  { kind: 'exif', marker: 0xe1, name: 'Exif\0\0' },
  { kind: 'xmp', marker: 0xe1, name: 'http://ns.adobe.com/xap/1.0/\0' },
  { kind: 'iptc', marker: 0xed, name: 'Photoshop 3.0\0' },
] as const;

/** Metadata by the names of chunks of WebP (RFC 9649, section 2.7.1.5). */
const WEBP_METADATA: Readonly<Record<string, MetadataKind>> = { EXIF: 'exif', 'XMP ': 'xmp' };

/**
 * Offset of XMP in its extension of a GIF, and what follows it, so that a reader that takes its
 * bytes as lengths of sub-blocks finds the end (XMP part 3, 1.1.2).
 */
const GIF_PACKET_AT = 14;
const GIF_TRAILER = Buffer.from([1, ...Array.from({ length: 256 }, (_, at) => 255 - at), 0]);

/** Whether all metadata of a type is read. A BMP has none. */
export const isMetadataRead = (type: InputType): boolean => type === 'bmp' || BLOCKS[type] !== undefined;

/**
 * Yields the first block of each kind, which counts in viewers, without bytes if it is too large or
 * damaged. TIFF has its EXIF in its own directories, which are no block. The metadata of types that
 * are not in the table is not read.
 */
export async function* metadataBlocks(
  type: InputType,
  source: Source,
): AsyncGenerator<{ readonly kind: MetadataKind; readonly bytes: Buffer | undefined }> {
  const seen = new Set<MetadataKind>();
  for await (const { kind, read } of BLOCKS[type]?.(source) ?? []) {
    if (seen.has(kind)) continue;
    seen.add(kind);
    const bytes = await read();
    yield { kind, bytes: bytes && bytes.length <= MAX_BLOCK_BYTES ? bytes : undefined };
  }
}

const BLOCKS: Partial<Record<InputType, (source: Source) => AsyncGenerator<Block>>> = {
  async *jpg({ window, file }) {
    for await (const { marker, offset, length } of jpegSegments(window)) {
      for (const { kind, name } of SEGMENTS.filter((one) => one.marker === marker)) {
        const start = (await window.read(offset, name.length)).toString('latin1');
        if (start !== name) continue;
        yield { kind, read: readAt(file, offset + name.length, length - name.length) };
      }
    }
  },
  async *png({ window, file }) {
    for await (const chunk of pngChunks(window)) {
      const kind = await kindOfChunk(chunk, window);
      const body = () => file.read(chunk.offset, chunk.length);
      if (kind) yield { kind, read: async () => (await readMetadataChunk({ ...chunk, body }))?.bytes };
    }
  },
  async *webp({ window, file }) {
    for await (const { name, offset, length } of riffChunks(window)) {
      const kind = WEBP_METADATA[name];
      if (kind) yield { kind, read: readAt(file, offset, length) };
    }
  },
  async *gif({ window, file }) {
    for await (const block of gifBlocks(window)) {
      const { offset, end = offset } = block;
      if (isXmp(block)) return yield { kind: 'xmp', read: gifPacket(file, offset + GIF_PACKET_AT, end) };
    }
  },
  async *tiff({ file }) {
    const tiff = await TiffReader.open(file);
    const tags = await tiff?.tags((await tiff.first()) ?? 0);
    for (const kind of ['iptc', 'xmp'] as const) {
      const { at, count, width } = tags?.get(TAG[kind]) ?? {};
      if (at !== undefined && count && width) yield { kind, read: readAt(file, at, count * width) };
    }
  },
  avif: heifBlocks,
  heic: heifBlocks,
  async *jxl({ window, file }) {
    for await (const box of boxes(window)) {
      const { name, offset, length } = box;
      const isCompressed = name === 'brob';
      const kind = JXL_METADATA[await contentName(window, box)];
      const body = readAt(file, isCompressed ? offset + 4 : offset, isCompressed ? length - 4 : length);
      const content = isCompressed ? () => body().then(decompress) : body;
      if (kind) yield { kind, read: kind === 'exif' ? () => content().then(afterOffset) : content };
    }
  },
};

/** Returns a function that reads a block. A damaged file can state a length below 0. */
const readAt = (file: ByteReader, offset: number, length: number) => async () =>
  length > MAX_BLOCK_BYTES ? undefined : file.read(offset, Math.max(0, length));

/** Returns a function that reads the XMP of a GIF; undefined if it does not end as it must. */
const gifPacket = (file: ByteReader, start: number, end: number) => async () => {
  const block = await readAt(file, start, end - start)();
  const length = (block?.length ?? 0) - GIF_TRAILER.length;
  return block?.subarray(length).equals(GIF_TRAILER) ? block.subarray(0, length) : undefined;
};

async function* heifBlocks({ file }: Source): AsyncGenerator<Block> {
  const meta = metaIn(await file.read(0, META_BYTES));
  for (const item of meta.items) {
    const { id } = item;
    const kind = metadataKindOf(item);
    const length = meta.locations.get(id)?.length;
    if (!kind) continue;
    const read = async () =>
      length && length <= MAX_BLOCK_BYTES ? readItem(meta, file, id, length) : undefined;
    yield { kind, read: kind === 'exif' ? () => read().then(afterOffset) : read };
  }
}

/** Returns EXIF after the offset of its header in HEIF and JPEG XL (ISO/IEC 18181-2, 9.1). */
const afterOffset = (block: Buffer | undefined): Buffer | undefined =>
  block && block.length >= 4 ? block.subarray(4 + block.readUInt32BE(0)) : undefined;

/** Decompresses a box (ISO/IEC 18181-2, 9.3); undefined if it is damaged or too large. */
const decompress = async (block: Buffer | undefined): Promise<Buffer | undefined> =>
  block && promisify(brotliDecompress)(block, { maxOutputLength: MAX_BLOCK_BYTES }).catch(() => undefined);
