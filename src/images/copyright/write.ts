/**
 * @module Writes the copyright of an image to a result, in which a tool has left no metadata but
 * the colour profile, and the texts of a PNG.
 */
import type { FileHandle } from 'node:fs/promises';
import type { OutputType } from '../../tables/formats.ts';
import {
  bigEndian,
  type Edit,
  editFile,
  fileReader,
  littleEndian,
  WindowReader,
} from '../containers/file.ts';
import { TAG, TiffReader } from '../containers/ifd.ts';
import { JFIF_SEGMENT, jpegSegments, riffChunks } from '../containers/parts.ts';
import { jxlMetadataEdits } from '../jxl.ts';
import { SEGMENTS } from '../metadata-blocks.ts';
import { pngTextRemovals, XMP_TEXT } from '../png/png-text.ts';
import { PNG_HEADER_BYTES, pngChunk } from '../png/png-writer.ts';
import { readWebp, WEBP_FLAGS } from '../webp.ts';
import { type CopyrightBlocks, encodeCopyright } from './blocks.ts';
import { type DirectoryEntry, encodeDirectory, exifEntries, UNDEFINED } from './exif-fields.ts';
import type { Copyright, FieldText } from './fields.ts';
import { toResource } from './iptc.ts';

interface Target {
  readonly file: FileHandle;
  readonly bytes: number;
}

type Writer = (
  target: Target,
  blocks: CopyrightBlocks,
  texts: readonly FieldText[],
) => Promise<Edit[]> | Edit[];

/** Returns the changes of a file by its format. An AVIF gets the blocks from its encoder. */
const WRITERS: Partial<Readonly<Record<OutputType, Writer>>> = {
  async jpg({ file }, { exif, iptc, xmp }) {
    let at = 2;
    for await (const { marker, end } of jpegSegments(fileReader(file))) {
      if (marker !== JFIF_SEGMENT) break;
      at = end;
    }
    const contents = { exif, xmp, iptc: iptc && toResource(iptc) };
    const segments = SEGMENTS.flatMap(({ kind, marker, name }) => {
      const content = contents[kind];
      if (!content) return [];
      const length = bigEndian(2 + name.length + content.length, 2);
      return [Buffer.from([0xff, marker]), length, Buffer.from(name, 'latin1'), content];
    });
    return [{ at, removed: 0, bytes: Buffer.concat(segments) }];
  },
  async png({ file }, { exif, xmp }) {
    // No compression, no language, no translated keyword.
    const keyword = Buffer.from(`${XMP_TEXT}\0\0\0\0\0`, 'latin1');
    const bytes = concat(
      exif && pngChunk('eXIf', exif),
      xmp && pngChunk('iTXt', Buffer.concat([keyword, xmp])),
    );
    return [{ at: PNG_HEADER_BYTES, removed: 0, bytes }, ...(await pngTextRemovals(file))];
  },
  async webp({ file, bytes }, { exif, xmp }) {
    const { width = 1, height = 1, opaque } = await readWebp(new WindowReader(file));
    const { value: first } = await riffChunks(fileReader(file), 1).next();
    const isExtended = first?.name === 'VP8X';
    const [stated = 0] = isExtended ? await fileReader(file).read(first.offset, 1) : [];
    const flags = stated | (exif ? WEBP_FLAGS.exif : 0) | (xmp ? WEBP_FLAGS.xmp : 0);
    const sides = [littleEndian(width - 1, 3), littleEndian(height - 1, 3)];
    const alpha = opaque ? 0 : WEBP_FLAGS.alpha;
    const header = isExtended
      ? Buffer.from([flags])
      : riffChunk('VP8X', Buffer.concat([littleEndian(flags | alpha, 4), ...sides]));
    const added = concat(exif && riffChunk('EXIF', exif), xmp && riffChunk('XMP ', xmp));
    const length = bytes - 8 + (isExtended ? 0 : header.length) + added.length;
    return [
      { at: 4, removed: 4, bytes: littleEndian(length, 4) },
      isExtended
        ? { at: first.offset, removed: 1, bytes: header }
        : { at: RIFF_HEAD_BYTES, removed: 0, bytes: header },
      { at: bytes, removed: 0, bytes: added },
    ];
  },
  async tiff({ file, bytes }, { iptc, xmp }, texts) {
    const reader = fileReader(file);
    const tiff = await TiffReader.open(reader);
    const { value: directory } = (await tiff?.directories().next()) ?? {};
    if (!tiff || !directory) return [];
    const copies: DirectoryEntry[] = [];
    for (const [tag, { entryAt }] of await tiff.tags(directory.offset))
      copies.push({ tag, copy: await reader.read(entryAt, tiff.layout.entry) });
    const entries = [
      ...copies,
      ...exifEntries(texts),
      ...(iptc ? [{ tag: TAG.iptc, type: UNDEFINED, value: iptc }] : []),
      ...(xmp ? [{ tag: TAG.xmp, type: UNDEFINED, value: xmp }] : []),
    ];
    const at = bytes + (bytes % 2);
    const written = Buffer.concat([Buffer.alloc(bytes % 2), encodeDirectory(at, entries, directory.next)]);
    return [
      { at: tiff.layout.firstAt, removed: 4, bytes: littleEndian(at, 4) },
      { at: bytes, removed: 0, bytes: written },
    ];
  },
  jxl: ({ file, bytes }, { exif, xmp }) => jxlMetadataEdits(file, bytes, { exif, xmp }),
};

/** Returns the changes of a result without copyright, by its format. */
const CLEANERS: typeof WRITERS = { png: ({ file }) => pngTextRemovals(file) };

/** Bytes before the first chunk of a WebP. */
const RIFF_HEAD_BYTES = 12;

const concat = (...parts: (Buffer | undefined)[]): Buffer =>
  Buffer.concat(parts.filter((part) => part !== undefined));

/** Encodes a chunk, padded to an even length (RFC 9649, section 2.3). */
const riffChunk = (name: string, body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(name, 'latin1'),
    littleEndian(body.length, 4),
    body,
    Buffer.alloc(body.length % 2),
  ]);

/** Writes the copyright, if there is any, to the file at `path`. Returns its new size in bytes. */
export async function writeCopyright(
  target: { readonly path: string; readonly bytes: number },
  format: OutputType,
  copyright: Copyright = { texts: [], isPartial: false },
): Promise<number> {
  const { texts } = copyright;
  const write = (texts.length > 0 ? WRITERS : CLEANERS)[format];
  if (!write) return target.bytes;
  const blocks = encodeCopyright(copyright, format);
  return editFile(target, (file) => write({ file, bytes: target.bytes }, blocks, texts));
}
