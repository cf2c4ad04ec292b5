/** @module Repairs AVIF and HEIC in place, so that libheif decodes only the primary image. */
import { type FileHandle, open } from 'node:fs/promises';
import { type RepairTarget, readAt, writeAt } from '../containers/file.ts';
import { parseBoxes, renameBox } from '../containers/parts.ts';
import { APERTURE, codePointsIn, isProfile, META_BYTES, ROTATIONS } from './heif.ts';
import { findNeeded, type HeifMeta, metaIn, type Reference } from './heif-items.ts';

/** Offset of the major brand in an AVIF or HEIC (ISO/IEC 14496-12, section 4.3). */
const BRAND_AT = 8;

/** Major brands of sequences and still images (ISO/IEC 23008-12, section 10; AVIF, section 6). */
const STILL_BRANDS = {
  avif: { sequences: ['avis', 'msf1'], still: 'avif' },
  heic: { sequences: ['hevc', 'hevx', 'msf1'], still: 'heic' },
} as const;

/** Repairs the header of a file. */
export async function repairHeif(
  { file }: RepairTarget,
  type: keyof typeof STILL_BRANDS,
): Promise<undefined> {
  await changeHeader(file, (head, fileBytes) => {
    rebrandSequence(head, type);
    stateMetaLength(head, fileBytes);
    const meta = metaIn(head);
    const { primary } = meta;
    stateMatrix(meta);
    if (primary === undefined) return;
    hideOtherItems(meta, primary);
    simplifyReferences(meta, primary);
    stateAlphaSize(metaIn(head), primary);
  });
}

/** Makes every aperture, rotation and mirroring a rotation of 0 degrees: the plan applies them. */
export async function removeTransforms(path: string): Promise<void> {
  await using file = await open(path, 'r+');
  await changeHeader(file, (head) => {
    for (const { name, body } of metaIn(head).properties) {
      if (![APERTURE, ...ROTATIONS].includes(name) || body.length === 0) continue;
      renameBox(body, 'irot');
      body[0] = 0;
    }
  });
}

/**
 * Takes the colour profile out of the file at a path. heif-convert would copy it to a PNG, and
 * libpng rejects some valid profiles, such as the sRGB profile of Hewlett-Packard (png_sRGB_checks
 * in its png.c).
 */
export async function takeProfile(path: string): Promise<Buffer | undefined> {
  let profile: Buffer | undefined;
  await using file = await open(path, 'r+');
  await changeHeader(file, (head) => {
    const { primary, properties, propertiesOf } = metaIn(head);
    for (const { name, body } of propertiesOf(primary) ?? properties) {
      if (name !== 'colr' || !isProfile(body)) continue;
      profile ??= body.subarray(4);
      renameBox(body, 'free');
    }
  });
  return profile;
}

/** Changes the first bytes of a file, which contain the box `meta`. */
async function changeHeader(
  file: FileHandle,
  change: (head: Buffer, fileBytes: number) => void,
): Promise<void> {
  const { bytes, found } = await readAt(file, 0, META_BYTES);
  const head = bytes.subarray(0, found);
  const before = Buffer.from(head);
  change(head, (await file.stat()).size);
  if (!head.equals(before)) await writeAt(file, 0, head);
}

/** Marks a sequence as a still image, because older libheif reads no sequences. */
function rebrandSequence(head: Buffer, type: keyof typeof STILL_BRANDS): void {
  const { sequences, still } = STILL_BRANDS[type];
  const brandName = head.toString('latin1', BRAND_AT, BRAND_AT + 4);
  if (sequences.some((brand) => brand === brandName)) head.write(still, BRAND_AT);
}

/**
 * States the length of a box `meta` that reaches to the end of the file. libheif 1.15 rejects the
 * length 0, which means that.
 */
function stateMetaLength(head: Buffer, fileBytes: number): void {
  const at = parseBoxes(head).reduce((sum, { body }) => sum + 8 + body.length, 0);
  const isOpen = head.toString('latin1', at + 4, at + 8) === 'meta' && head.readUInt32BE(at) === 0;
  if (isOpen) head.writeUInt32BE(fileBytes - at, at);
}

/** Matrix coefficients of the code points (ITU-T H.273, table 4): unspecified, and BT.601. */
const UNSPECIFIED = 2;
const BT601 = 6;

/**
 * Replaces unspecified matrix coefficients by those that decoders use for them. libheif 1.23
 * ignores code points that specify nothing, and with them the range of the samples.
 */
function stateMatrix({ properties }: HeifMeta): void {
  for (const points of codePointsIn(properties)) {
    if (points.length >= 11 && points.readUInt16BE(8) === UNSPECIFIED) points.writeUInt16BE(BT601, 8);
  }
}

/**
 * Hides all items except the primary image (ISO/IEC 23008-12, section 6.4.2). heif-convert decodes
 * every image that is not hidden, and fails if one of them does.
 */
function hideOtherItems({ items }: HeifMeta, primary: number): void {
  for (const { id, body } of items) {
    if (id !== primary) body[3] = (body[3] as number) | 1;
  }
}

/** Reference type that no reader knows. */
const IGNORED = 'free';

/**
 * Restricts the references to those of the primary image, its parts and its alpha. libheif 1.15
 * rejects a file with a thumbnail, an auxiliary image or metadata that refers to several images, or
 * to an item that is not an image. Phones write gain maps and EXIF like that.
 */
function simplifyReferences(meta: HeifMeta, primary: number): void {
  const { iref, references } = meta;
  const idLength = iref?.[0] === 0 ? 2 : 4;
  const bytes = ({ to }: Reference): number => 10 + idLength * (to.length + 1);
  const total = references.reduce((sum, reference) => sum + bytes(reference), 4);
  if (!iref || total !== iref.length) return; // damaged
  const needed = findNeeded(meta, primary);
  const restricted = references.map((one) => restrict(one, primary, needed));
  const surplus = (total - 4 - restricted.reduce((sum, one) => sum + bytes(one), 0)) / idLength;
  const filler = restricted.findIndex(({ type }) => type === IGNORED);
  // Without a reference to ignore, there is no room for the IDs that were removed.
  const kept = surplus > 0 && filler < 0 ? references : restricted;
  let at = 4;
  for (const [index, { type, from, to }] of kept.entries()) {
    const ids = index === filler ? [...to, ...unusedIds(surplus, to)] : to;
    at = iref.writeUInt32BE(10 + idLength * (ids.length + 1), at);
    at += iref.write(type, at, 'latin1');
    at = iref.writeUIntBE(from, at, idLength);
    at = iref.writeUInt16BE(ids.length, at);
    for (const id of ids) at = iref.writeUIntBE(id, at, idLength);
  }
}

/** Returns other IDs, all different, because libheif 1.23 rejects a reference with equal ones. */
function unusedIds(count: number, others: readonly number[]): number[] {
  const ids = Array.from({ length: count + others.length }, (_, at) => 0xffff - at);
  const used = new Set(others);
  return ids.filter((id) => !used.has(id)).slice(0, count);
}

/** Restricts a reference to the needed items, and to EXIF and XMP of the primary image. */
function restrict(reference: Reference, primary: number, needed: ReadonlySet<number>): Reference {
  const { type, from, to } = reference;
  const ignored = { ...reference, type: IGNORED };
  if (type === 'thmb') return ignored;
  if (type === 'dimg') return needed.has(from) ? reference : ignored;
  if (type === 'cdsc') return to.includes(primary) ? { ...reference, to: [primary] } : ignored;
  if (type !== 'auxl') return reference;
  return needed.has(from) ? { ...reference, to: to.filter((id) => needed.has(id)) } : ignored;
}

/** Properties that libheif does not need to decode alpha. */
const REPLACEABLE = ['pixi', 'colr', 'pasp'];

/**
 * Gives the alpha of the primary image its size, in place of another property. Without a size,
 * libheif 1.15 decodes the image to black.
 */
function stateAlphaSize({ associations, properties, references }: HeifMeta, primary: number): void {
  const positionOf = (id: number, ...names: string[]): number =>
    (associations.get(id)?.indexes ?? []).findIndex((index) =>
      names.includes(properties[index - 1]?.name ?? ''),
    );
  const size = associations.get(primary)?.indexes[positionOf(primary, 'ispe')];
  if (size === undefined) return;
  for (const { type, from, to } of references) {
    const lacksSize = type === 'auxl' && to.includes(primary) && positionOf(from, 'ispe') < 0;
    const at = lacksSize ? positionOf(from, ...REPLACEABLE) : -1;
    const { entries, indexLength = 1 } = associations.get(from) ?? {};
    if (at >= 0 && size < 2 ** (8 * indexLength - 1))
      entries?.writeUIntBE(size, at * indexLength, indexLength);
  }
}
