/**
 * @module Reads what the metadata of a file gives away: only the kinds, which the headers of a
 * result state, or also the values. The notes of the maker of a camera are not read.
 */
import { cleanText, sanitizeForDisplay } from '../../base/text.ts';
import type { InputType } from '../../tables/formats.ts';
import { type ByteReader, bufferReader, withReader } from '../containers/file.ts';
import { gifBlocks, jpegSegments, type Part, pngChunks } from '../containers/parts.ts';
import { decodeText, MAX_TEXT_BYTES } from '../copyright/fields.ts';
import { imageResources, iptcDatasets } from '../copyright/iptc.ts';
import { readXmpProperties } from '../copyright/xmp.ts';
import { withoutMarker } from '../exif.ts';
import type { MetadataKind } from '../image-info.ts';
import { isMetadataRead, metadataBlocks, type Source } from '../metadata-blocks.ts';
import { isText, readPlainText } from '../png/png-text.ts';
import { exifValues, MAX_THUMBNAIL_BYTES } from './exif-values.ts';
import {
  IPTC_DATASETS,
  PNG_KEYWORDS,
  REVEALED_KINDS,
  type RevealedKind,
  type RevealedValue,
  XMP_PROPERTIES,
} from './fields-table.ts';

/** What the metadata of a file gives away. */
export interface Revealed {
  readonly values: readonly RevealedValue[];
  /** The embedded thumbnail, a JPEG. It can show what was cropped. */
  readonly thumbnail: { readonly media_type: string; readonly bytes: number; readonly base64: string } | null;
  /** Whether these are all values: there are not too many, and all metadata was read. */
  readonly complete: boolean;
}

/** Maximum number of values, and maximum length of one. */
const MAX_VALUES = 100;
const MAX_VALUE_UNITS = 200;

const JPEG_START = Buffer.from([0xff, 0xd8, 0xff]);

/** What a file contains: a value, a thumbnail, or a block that is too large or damaged. */
type Item =
  | RevealedValue
  | { readonly kind: 'thumbnail'; readonly jpeg: Buffer }
  | { readonly kind: undefined };

const UNREADABLE: Item = { kind: undefined };

/**
 * Reads the kinds of what EXIF, IPTC and XMP give away.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 */
export function readRevealedKinds(path: string, type: InputType): Promise<RevealedKind[]> {
  return withReader(path, async (window, file) => {
    const kinds = new Set<RevealedKind>();
    for await (const { kind } of metadataItems(type, { window, file })) {
      if (kind) kinds.add(kind);
      if (kinds.size === REVEALED_KINDS.length) break;
    }
    return REVEALED_KINDS.filter((kind) => kinds.has(kind));
  });
}

/**
 * Reads the values that EXIF, IPTC, XMP and the comments of the format give away. Each is one line
 * of at most 200 characters, without control characters.
 *
 * @throws {HeaderTooComplexError} if the file takes too many reads
 */
export function readRevealed(path: string, type: InputType): Promise<Revealed> {
  return withReader(path, async (window, file) => {
    const values: RevealedValue[] = [];
    let jpeg: Buffer | undefined;
    let complete = isMetadataRead(type);
    for (const items of [metadataItems, commentItems])
      for await (const item of items(type, { window, file })) {
        if ('jpeg' in item) jpeg ??= item.jpeg;
        else if ('value' in item && values.length < MAX_VALUES) values.push(item);
        else complete = false;
        if (values.length === MAX_VALUES && !complete) break;
      }
    const order = ({ kind }: RevealedValue): number => REVEALED_KINDS.indexOf(kind);
    return {
      values: values.sort((one, other) => order(one) - order(other)),
      thumbnail: jpeg
        ? { media_type: 'image/jpeg', bytes: jpeg.length, base64: jpeg.toString('base64') }
        : null,
      complete,
    };
  });
}

/** Creates a value; none if it would be empty. */
function lineOf(
  source: RevealedValue['source'],
  kind: RevealedKind,
  name: string,
  text: string | undefined,
): Item[] {
  const line = cleanText(text ?? '').replace(/\s+/g, ' ');
  return line === '' ? [] : [{ kind, source, name, value: sanitizeForDisplay(line, MAX_VALUE_UNITS) }];
}

/** Creates a thumbnail; none if it is no JPEG. */
const thumbnailOf = (bytes: Buffer): Item[] =>
  bytes.subarray(0, JPEG_START.length).equals(JPEG_START) && bytes.length <= MAX_THUMBNAIL_BYTES
    ? [{ kind: 'thumbnail', jpeg: bytes }]
    : [];

async function* metadataItems(type: InputType, source: Source): AsyncGenerator<Item> {
  if (type === 'tiff') yield* exifItems(source.file, false);
  for await (const { kind, bytes } of metadataBlocks(type, source)) {
    if (bytes) yield* ITEMS[kind](bytes);
    else yield UNREADABLE;
  }
}

const ITEMS: Readonly<Record<MetadataKind, (block: Buffer) => Iterable<Item> | AsyncIterable<Item>>> = {
  exif: (block) => exifItems(bufferReader(withoutMarker(block)), true),
  *iptc(block) {
    for (const { number, body } of imageResources(block))
      if (number === THUMBNAIL_RESOURCE) yield* thumbnailOf(body.subarray(THUMBNAIL_AT));
    let count = 0;
    for (const { dataset, body } of iptcDatasets(block)) {
      const [kind, name = ''] = IPTC_DATASETS[dataset] ?? [];
      if (!kind) continue;
      count += 1;
      if (count > MAX_VALUES) return yield UNREADABLE;
      yield* lineOf('iptc', kind, name, decodeText(body));
    }
  },
  *xmp(packet) {
    const found = readXmpProperties(packet, (name) => Object.hasOwn(XMP_PROPERTIES, name));
    if (!found) yield UNREADABLE;
    for (const [name, texts] of Map.groupBy(found ?? [], (one) => one.name)) {
      const text = texts.flatMap((one) => one.text ?? []).join('; ');
      yield* lineOf('xmp', XMP_PROPERTIES[name] as RevealedKind, name, text);
    }
    const [, base64] = XMP_THUMBNAIL.exec(packet.toString('latin1')) ?? [];
    if (base64) yield* thumbnailOf(Buffer.from(base64.replaceAll('&#xA;', ''), 'base64'));
  },
};

/** Resource with a thumbnail, and the offset of its JPEG (Photoshop, "Thumbnail Resource"). */
const THUMBNAIL_RESOURCE = 1036;
const THUMBNAIL_AT = 28;
/** A thumbnail in XMP, with the prefix that all programs write (XMP part 2, 1.2.2.5). */
const XMP_THUMBNAIL = /<xmpGImg:image>([\w+/=\s&#;]+)</;

async function* exifItems(bytes: ByteReader, hasThumbnail: boolean): AsyncGenerator<Item> {
  for await (const found of exifValues(bytes, hasThumbnail))
    yield* 'thumbnail' in found
      ? thumbnailOf(found.thumbnail)
      : lineOf('exif', found.kind, found.name, found.value);
}

/** Yields the first comments of a format, of which one file can have thousands. */
async function* commentItems(type: InputType, source: Source): AsyncGenerator<Item> {
  let count = 0;
  for await (const items of COMMENTS[type]?.(source) ?? []) {
    count += 1;
    if (count > MAX_VALUES) return yield UNREADABLE;
    yield* items;
  }
}

/** Comments of a JPEG or a GIF, of which the first part is read, and texts of a PNG. */
const COMMENTS: Partial<Record<InputType, (source: Source) => AsyncGenerator<Item[]>>> = {
  async *jpg({ window, file }) {
    for await (const { marker, offset, length } of jpegSegments(window))
      if (marker === COMMENT_SEGMENT) yield readComment(file, offset, length);
  },
  async *png({ window, file }) {
    for await (const chunk of pngChunks(window)) if (isText(chunk)) yield readPngText(chunk, file);
  },
  async *gif({ window, file }) {
    for await (const { head, offset } of gifBlocks(window))
      if (head[0] === EXTENSION && head[1] === COMMENT_EXTENSION)
        yield readComment(file, offset + 3, head[2] ?? 0);
  },
};

async function readComment(file: ByteReader, offset: number, length: number): Promise<Item[]> {
  const bytes = await file.read(offset, Math.min(length, MAX_TEXT_BYTES));
  return lineOf('text', 'comment', 'Comment', decodeText(bytes));
}

async function readPngText(chunk: Part, file: ByteReader): Promise<Item[]> {
  const { keyword = '', text } = (await readPlainText(chunk, file)) ?? {};
  const kind = Object.hasOwn(PNG_KEYWORDS, keyword) ? (PNG_KEYWORDS[keyword] ?? 'comment') : 'comment';
  return text
    ? lineOf('text', kind, sanitizeForDisplay(keyword), decodeText(text.subarray(0, MAX_TEXT_BYTES)))
    : [];
}

/** Marker of a comment of a JPEG, and first bytes of one of a GIF. */
const COMMENT_SEGMENT = 0xfe;
const EXTENSION = 0x21;
const COMMENT_EXTENSION = 0xfe;
