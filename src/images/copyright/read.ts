/** @module Reads the copyright in metadata. The first EXIF, IPTC and XMP count, as in viewers. */
import { bufferReader, fileReader, WindowReader, withFile } from '../containers/file.ts';
import { withoutMarker } from '../exif.ts';
import type { ImageInfo, MetadataKind } from '../image-info.ts';
import { MAX_BLOCK_BYTES, metadataBlocks } from '../metadata-blocks.ts';
import { readExifTexts } from './exif-fields.ts';
import { type Copyright, type FieldText, selectTexts } from './fields.ts';
import { readIptcTexts } from './iptc.ts';
import { readXmpTexts } from './xmp.ts';

/**
 * Reads the copyright of the file at `path`, which has been repaired and inspected.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 */
export function readCopyright(path: string, { type, metadata = [] }: ImageInfo): Promise<Copyright> {
  return withFile(path, 'r', async (handle) => {
    const file = fileReader(handle);
    const found: FieldText[] = [];
    const seen = new Set<MetadataKind>();
    let isPartial = false;
    const add = (kind: MetadataKind, texts: readonly FieldText[] | undefined): void => {
      seen.add(kind);
      found.push(...(texts ?? []));
      isPartial ||= texts === undefined;
    };
    if (type === 'tiff') add('exif', await readExifTexts(file));
    for await (const { kind, read } of metadataBlocks(type, { window: new WindowReader(handle), file })) {
      if (seen.has(kind)) continue;
      const bytes = await read();
      add(kind, bytes && bytes.length <= MAX_BLOCK_BYTES ? await PARSERS[kind](bytes) : undefined);
    }
    return selectTexts(found, isPartial || metadata.some((kind) => !seen.has(kind)));
  });
}

type Texts = FieldText[] | undefined;

const PARSERS: Readonly<Record<MetadataKind, (block: Buffer) => Texts | Promise<Texts>>> = {
  exif: (block) => readExifTexts(bufferReader(withoutMarker(block))),
  iptc: readIptcTexts,
  xmp: readXmpTexts,
};
