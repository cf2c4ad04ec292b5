/** @module Reads the copyright in metadata. */
import { open } from 'node:fs/promises';
import { bufferReader, fileReader, WindowReader } from '../containers/file.ts';
import { withoutMarker } from '../exif.ts';
import type { ImageInfo, MetadataKind } from '../image-info.ts';
import { metadataBlocks } from '../metadata-blocks.ts';
import { readExifTexts } from './exif-fields.ts';
import { type Copyright, type FieldText, selectTexts } from './fields.ts';
import { readIptcTexts } from './iptc.ts';
import { readXmpTexts } from './xmp.ts';

/**
 * Reads the copyright of the file at `path`, which has been repaired and inspected.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 */
export async function readCopyright(path: string, { type, metadata = [] }: ImageInfo): Promise<Copyright> {
  await using handle = await open(path, 'r');
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
  for await (const { kind, bytes } of metadataBlocks(type, { window: new WindowReader(handle), file }))
    add(kind, bytes && (await PARSERS[kind](bytes)));
  return selectTexts(found, isPartial || metadata.some((kind) => !seen.has(kind)));
}

type Texts = FieldText[] | undefined;

const PARSERS: Readonly<Record<MetadataKind, (block: Buffer) => Texts | Promise<Texts>>> = {
  exif: (block) => readExifTexts(bufferReader(withoutMarker(block))),
  iptc: readIptcTexts,
  xmp: readXmpTexts,
};
