/** @module Items of AVIF and HEIC files (ISO/IEC 14496-12, section 8.11; ISO/IEC 23008-12). */
import type { ByteReader } from '../containers/file.ts';
import { type Box, findBox, parseBoxes } from '../containers/parts.ts';
import type { MetadataKind, Size } from '../image-info.ts';

/** Reads an unsigned integer of up to 6 bytes; undefined beyond the end, 0 for 0 bytes. */
export function readNumber(data: Buffer | undefined, at: number, length: number): number | undefined {
  if (length === 0) return 0;
  return data && at + length <= data.length ? data.readUIntBE(at, length) : undefined;
}

/** The box `meta` of a file: its items, their properties, and how they refer to each other. */
export type HeifMeta = ReturnType<typeof parseMeta>;

/** Parses the box `meta` in the first bytes of a file, to which the result refers. */
export const metaIn = (head: Buffer): HeifMeta => parseMeta(findBox(parseBoxes(head), 'meta')?.subarray(4));

/**
 * Parses the content of the box `meta` without version and flags, which must stay valid while the
 * result is used.
 */
export function parseMeta(body: Buffer | undefined) {
  const meta = parseBoxes(body);
  const [pitm, iinf, iref, iprp] = ['pitm', 'iinf', 'iref', 'iprp'].map((name) => findBox(meta, name));
  const inIprp = parseBoxes(iprp);
  const properties = parseBoxes(findBox(inIprp, 'ipco'));
  // A file can have several boxes, for example one for each item.
  const associations = new Map(
    inIprp.flatMap(({ name, body }) => (name === 'ipma' ? parseAssociations(body) : [])).reverse(),
  );
  return {
    /** ID of the primary item (section 8.11.4). */
    primary: readNumber(pitm, 4, pitm?.[0] === 0 ? 2 : 4),
    items: parseItems(iinf),
    references: parseReferences(iref),
    /** Content of the box with the references. */
    iref,
    /** Properties of all items, in the order of their indexes. */
    properties,
    associations,
    locations: parseLocations(findBox(meta, 'iloc')),
    /** Data of items in the box itself. */
    idat: findBox(meta, 'idat') ?? Buffer.alloc(0),
    /** Returns the properties of an item, in order; undefined if it has none. */
    propertiesOf(id: number | undefined = Number.NaN): readonly Box[] | undefined {
      const indexes = associations.get(id)?.indexes ?? [];
      return indexes.length > 0 ? indexes.flatMap((index) => properties[index - 1] ?? []) : undefined;
    },
  };
}

/** Returns the size that a property `ispe` declares; undefined for others, and without pixels. */
export function declaredSize({ name, body }: Box): Size | undefined {
  const [width, height] = [readNumber(body, 4, 4), readNumber(body, 8, 4)];
  return name === 'ispe' && width && height ? { width, height } : undefined;
}

/** An item, such as an image or EXIF. */
interface Item {
  readonly id: number;
  readonly type: string;
  /** Media type of an item of the type `mime`; undefined for other types. */
  readonly contentType: string | undefined;
  /** Content of its box, which starts with the version and the flags. */
  readonly body: Buffer;
}

function parseItems(iinf: Buffer | undefined): Item[] {
  return parseBoxes(iinf?.subarray(iinf[0] === 0 ? 6 : 8)).flatMap(({ name, body }) => {
    const idLength = body[0] === 2 ? 2 : 4;
    const id = readNumber(body, 4, idLength);
    const type = body.toString('latin1', 6 + idLength, 10 + idLength);
    const [, contentType] = type === 'mime' ? body.toString('latin1', 10 + idLength).split('\0', 2) : [];
    return name === 'infe' && id !== undefined ? [{ id, type, contentType, body }] : [];
  });
}

/** Returns the kind of metadata of an item (ISO/IEC 23008-12, annex A); undefined for others. */
export function metadataKindOf({ type, contentType }: Item): MetadataKind | undefined {
  if (type === 'Exif') return 'exif';
  return contentType === 'application/rdf+xml' ? 'xmp' : undefined;
}

/** A reference from an item to others. */
export interface Reference {
  /** For example `dimg`: grid to tiles; `auxl`: depth map to image; `thmb`: thumbnail to image. */
  readonly type: string;
  readonly from: number;
  /** Number of items that the reference declares. */
  readonly count: number;
  /** IDs of the items that the file lists. */
  readonly to: readonly number[];
}

function parseReferences(iref: Buffer | undefined): Reference[] {
  const idLength = iref?.[0] === 0 ? 2 : 4;
  return parseBoxes(iref?.subarray(4)).flatMap(({ name, body }) => {
    const from = readNumber(body, 0, idLength);
    const count = readNumber(body, idLength, 2);
    if (from === undefined || count === undefined) return [];
    const listed = Math.min(count, Math.floor(body.length / idLength));
    const to = Array.from({ length: listed }, (_, at) => readNumber(body, idLength * (at + 1) + 2, idLength));
    return [{ type: name, from, count, to: to.filter((id) => id !== undefined) }];
  });
}

/** Types of alpha (MIAF, ISO/IEC 23000-22, 7.3.5; HEVC in ISO/IEC 23008-12, annex B). */
export const ALPHA_TYPES = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1'];

/** Returns whether a property marks an item as alpha. */
export function isAlpha({ name, body }: Box): boolean {
  return name === 'auxC' && ALPHA_TYPES.some((type) => body.toString('latin1', 4, 68).startsWith(type));
}

/** Maximum depth of images that are derived from others, such as a rotated grid. */
const MAX_DEPTH = 8;

/**
 * Finds the items that the primary image is made of, including their alpha. An auxiliary image
 * whose properties are not known can be alpha.
 */
export function findNeeded({ propertiesOf, references }: HeifMeta, primary: number): ReadonlySet<number> {
  const needed = new Set([primary]);
  const auxiliary = new Set(references.filter(({ type }) => type === 'auxl').map(({ from }) => from));
  const alphas = new Set([...auxiliary].filter((id) => propertiesOf(id)?.some(isAlpha) ?? true));
  for (let depth = 0, before = 0; depth < MAX_DEPTH && needed.size > before; depth += 1) {
    before = needed.size;
    for (const { type, from, to } of references) {
      if (type === 'dimg' && needed.has(from)) for (const id of to) needed.add(id);
      if (type === 'auxl' && alphas.has(from) && to.some((id) => needed.has(id))) needed.add(from);
    }
  }
  return needed;
}

/** The properties of an item (section 8.11.14). */
interface Association {
  /** Indexes of the properties, counted from 1. */
  readonly indexes: readonly number[];
  /** The part of the file with the indexes, of which the highest bits mark essential properties. */
  readonly entries: Buffer;
  /** Bytes per index. */
  readonly indexLength: 1 | 2;
}

/** Parses the associations of items with properties in a box. The first entry of an item counts. */
function parseAssociations(ipma: Buffer): [id: number, Association][] {
  const associations: [number, Association][] = [];
  const idLength = ipma[0] === 0 ? 2 : 4;
  const indexLength = ((ipma[3] ?? 0) & 1) === 1 ? 2 : 1;
  const mask = indexLength === 2 ? 0x7fff : 0x7f;
  for (let at = 8; at + idLength < ipma.length; ) {
    const id = ipma.readUIntBE(at, idLength);
    const count = readNumber(ipma, at + idLength, 1) ?? 0;
    const start = at + idLength + 1;
    const indexes = Array.from({ length: count }, (_, n) =>
      readNumber(ipma, start + n * indexLength, indexLength),
    );
    const entries = ipma.subarray(start, start + count * indexLength);
    associations.push([id, { indexes: indexes.map((index = 0) => index & mask), entries, indexLength }]);
    at = start + count * indexLength;
  }
  return associations;
}

/** Position of the data of an item: in the file, or in the box `idat`. */
interface Location {
  readonly inBox: boolean;
  readonly offset: number;
  /** Bytes of the data; undefined if it has several extents. */
  readonly length: number | undefined;
}

/** Reads the first bytes of the data of an item. */
export async function readItem(
  { idat, locations }: HeifMeta,
  bytes: ByteReader,
  id: number,
  length: number,
): Promise<Buffer> {
  const { inBox, offset = Number.NaN } = locations.get(id) ?? {};
  return inBox ? idat.subarray(offset, offset + length) : bytes.read(offset, length);
}

/** Parses the first extent of each item (section 8.11.3), unless it is in another file. */
function parseLocations(iloc: Buffer | undefined): Map<number, Location> {
  const locations = new Map<number, Location>();
  if (!iloc || iloc.length < 8) return locations;
  const version = iloc[0] ?? 0;
  const idLength = version < 2 ? 2 : 4;
  const methodLength = version === 0 ? 0 : 2;
  const [offsetLength, sizeLength] = nibbles(iloc[4]);
  const [baseLength, lastNibble] = nibbles(iloc[5]);
  const indexLength = version === 0 ? 0 : lastNibble;
  for (let at = 6 + idLength; at < iloc.length; ) {
    const id = readNumber(iloc, at, idLength);
    const method = (readNumber(iloc, at + idLength, methodLength) ?? 0) & 15;
    const reference = at + idLength + methodLength;
    const base = reference + 2;
    const extents = base + baseLength + 2;
    const count = readNumber(iloc, base + baseLength, 2);
    if (id === undefined || count === undefined) break;
    const start = readOffset(iloc, base, baseLength);
    const more = readOffset(iloc, extents + indexLength, offsetLength);
    const isHere = readNumber(iloc, reference, 2) === 0 && method <= 1 && count > 0;
    const length =
      count === 1 ? readOffset(iloc, extents + indexLength + offsetLength, sizeLength) : undefined;
    if (isHere && start !== undefined && more !== undefined)
      locations.set(id, { inBox: method === 1, offset: start + more, length });
    at = extents + count * (indexLength + offsetLength + sizeLength);
  }
  return locations;
}

const nibbles = (byte = 0): [number, number] => [byte >> 4, byte & 15];

/** Reads an offset of 0, 4 or 8 bytes. */
function readOffset(data: Buffer, at: number, length: number): number | undefined {
  if (length === 8) return at + 8 <= data.length ? Number(data.readBigUInt64BE(at)) : undefined;
  return length === 0 || length === 4 ? readNumber(data, at, length) : undefined;
}
