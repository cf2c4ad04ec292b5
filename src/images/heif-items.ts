/** @module Boxes and items of AVIF and HEIC files (ISO/IEC 14496-12, section 8.11; ISO/IEC 23008-12). */

/** Maximum number of boxes to read from one container. */
const MAX_BOXES = 1000;

/** A box (ISO/IEC 14496-12, section 4.2). */
export interface Box {
  /** Four-character type. */
  readonly name: string;
  /** The payload, including version and flags in a full box. */
  readonly body: Buffer;
}

/** Finds the payload of the first box with this name; with several names, each nested in the previous one. */
export function findBox(boxes: readonly Box[], name: string, ...deeper: string[]): Buffer | undefined {
  const body = boxes.find((box) => box.name === name)?.body;
  const [next, ...rest] = deeper;
  return body && next ? findBox(parseBoxes(body), next, ...rest) : body;
}

/** Parses boxes that follow one another, at most {@link MAX_BOXES}. */
export function parseBoxes(data: Buffer | undefined): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; data && at + 8 <= data.length && boxes.length < MAX_BOXES; ) {
    const size = data.readUInt32BE(at);
    if (size < 8) break; // to the end of the file, or a 64-bit size: not used by the boxes read here
    boxes.push({ name: data.toString('latin1', at + 4, at + 8), body: data.subarray(at + 8, at + size) });
    at += size;
  }
  return boxes;
}

/** Returns whether the whole content of a box was read. Its length precedes its name. */
export function isComplete(body: Buffer): boolean {
  return Buffer.from(body.buffer, body.byteOffset - 8, 4).readUInt32BE() === 8 + body.length;
}

/** Reads an unsigned integer of up to 6 bytes; undefined beyond the end. A length of 0 bytes stands for 0. */
export function readNumber(data: Buffer | undefined, at: number, length: number): number | undefined {
  if (length === 0) return 0;
  return data && at + length <= data.length ? data.readUIntBE(at, length) : undefined;
}

/** An item, such as an image or EXIF. */
export interface Item {
  readonly id: number;
  readonly type: string;
  /** Content of its box, which starts with the version and the flags. */
  readonly body: Buffer;
}

/** Parses the item information box. */
export function parseItems(iinf: Buffer | undefined): Item[] {
  return parseBoxes(iinf?.subarray(iinf[0] === 0 ? 6 : 8)).flatMap(({ name, body }) => {
    const idLength = body[0] === 2 ? 2 : 4;
    const id = readNumber(body, 4, idLength);
    const type = body.toString('latin1', 6 + idLength, 10 + idLength);
    return name === 'infe' && id !== undefined ? [{ id, type, body }] : [];
  });
}

/** Reads the ID of the primary item (section 8.11.4). */
export function primaryIn(boxes: readonly Box[]): number | undefined {
  const pitm = findBox(boxes, 'pitm');
  return readNumber(pitm, 4, pitm?.[0] === 0 ? 2 : 4);
}

/** A reference from an item to others. */
export interface Reference {
  /** For example `dimg` from a grid to its tiles, `auxl` from a depth map to its image, `thmb` from a thumbnail. */
  readonly type: string;
  readonly from: number;
  /** Number of items that the reference declares. */
  readonly count: number;
  /** IDs of the items that the file lists. */
  readonly to: readonly number[];
}

/** Parses the item reference box. */
export function parseReferences(iref: Buffer | undefined): Reference[] {
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

/** Parses the properties of all items, in the order of their indexes. */
export function parseProperties(iprp: Buffer | undefined): Box[] {
  return parseBoxes(findBox(parseBoxes(iprp), 'ipco'));
}

/** The properties of an item (section 8.11.14). */
export interface Association {
  /** Indexes of the properties, counted from 1. */
  readonly indexes: readonly number[];
  /** The part of the file with the indexes, of which the highest bits mark essential properties. */
  readonly entries: Buffer;
  /** Bytes per index. */
  readonly indexLength: 1 | 2;
}

/** Parses the associations of items with properties. The first entry of an item counts. */
export function parseAssociations(iprp: Buffer | undefined): Map<number, Association> {
  const associations = new Map<number, Association>();
  const ipma = findBox(parseBoxes(iprp), 'ipma');
  if (!ipma) return associations;
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
    if (!associations.has(id))
      associations.set(id, {
        indexes: indexes.map((index = 0) => index & mask),
        entries: ipma.subarray(start, start + count * indexLength),
        indexLength,
      });
    at = start + count * indexLength;
  }
  return associations;
}

/** Returns a function that finds the properties of an item, in order; undefined if none are associated with the item. */
export function createPropertyFinder(
  iprp: Buffer | undefined,
): (id: number | undefined) => Box[] | undefined {
  const properties = parseProperties(iprp);
  const associations = parseAssociations(iprp);
  return (id = Number.NaN) => {
    const indexes = associations.get(id)?.indexes ?? [];
    return indexes.length > 0 ? indexes.flatMap((index) => properties[index - 1] ?? []) : undefined;
  };
}

/** Position of the data of an item: in the file, or in the box `idat`. */
export interface Location {
  readonly inBox: boolean;
  readonly offset: number;
}

/** Parses the first extent of each item (section 8.11.3). Omits items that have none, or are in another file. */
export function parseLocations(iloc: Buffer | undefined): Map<number, Location> {
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
    if (isHere && start !== undefined && more !== undefined)
      locations.set(id, { inBox: method === 1, offset: start + more });
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
