import type { MetadataKind, Page, Picture, Profile } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';
import { readProfile } from './icc.ts';
import { numberReader, readTags, type Tag } from './tags.ts';

const TAG = {
  newSubfileType: 254,
  width: 256,
  height: 257,
  bitsPerSample: 258,
  compression: 259,
  photometric: 262,
  orientation: 274,
  samplesPerPixel: 277,
  profile: 34675,
} as const;
const METADATA: readonly { readonly tag: number; readonly kind: MetadataKind }[] = [
  { tag: 700, kind: 'xmp' },
  { tag: 33723, kind: 'iptc' },
  { tag: 34665, kind: 'exif' },
  { tag: 34853, kind: 'exif' },
];
/** A smaller version of another page, for quick display: bit 0 of NewSubfileType. */
const REDUCED = 1;
const PHOTOMETRIC = { whiteIsZero: 0, blackIsZero: 1, palette: 3, separated: 5 } as const;
/** CIELab, ICCLab and ITULab. */
const LAB: readonly (number | undefined)[] = [8, 9, 10];
const COMPRESSION = { oldJpeg: 6, jpeg: 7 } as const;

/** The version in the header; that of BigTIFF, which is laid out differently, is 43. */
const CLASSIC = 42;
/** More pages than this are overlooked: no honest file comes near. */
const MOST_PAGES = 512;

type Tags = ReadonlyMap<number, Tag>;

/** The pages of a classic TIFF, and what is special about each (TIFF 6.0, sections 2, 8, 16, 22 and 23). */
export async function readTiff(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const read = numberReader((await bytes.at(0, 1))[0] === 0x4d);
  if ((await read(bytes, 2, 2)) !== CLASSIC) return {};
  const pages: Page[] = [];
  const visited = new Set<number>();
  let first: Tags | undefined;
  let offset = await read(bytes, 4, 4);

  for (let at = 0; offset && !visited.has(offset) && at < MOST_PAGES; at += 1) {
    visited.add(offset);
    const tags = await readTags(bytes, read, offset);
    if (!((tags.get(TAG.newSubfileType)?.value ?? 0) & REDUCED)) {
      pages.push(pageOf(at, tags));
      first ??= tags;
    }
    const count = (await read(bytes, offset, 2)) ?? 0;
    offset = await read(bytes, offset + 2 + count * 12, 4);
  }
  return first ? { pages, ...traits(first), profile: await profileOf(bytes, first) } : {};
}

function pageOf(at: number, tags: Tags): Page {
  const value = (tag: number): number | undefined => tags.get(tag)?.value;
  const photometric = value(TAG.photometric);
  const bits = value(TAG.bitsPerSample) ?? 1;
  const grey = photometric === PHOTOMETRIC.whiteIsZero || photometric === PHOTOMETRIC.blackIsZero;
  const compression = value(TAG.compression);
  const orientation = value(TAG.orientation) ?? 1;
  return {
    at,
    ...(photometric === PHOTOMETRIC.palette && { tones: 'palette' }),
    ...(grey && bits === 1 && (value(TAG.samplesPerPixel) ?? 1) === 1 && { tones: 'bilevel' }),
    // Two and four bits: one bit, and eight, are read the right way round.
    ...(photometric === PHOTOMETRIC.whiteIsZero && [2, 4].includes(bits) && { inverted: true }),
    // Whatever its colours, such a page is read with its orientation half applied.
    ...(compression === COMPRESSION.jpeg && orientation > 1 && { mirroredFor: orientation }),
    ...(compression === COMPRESSION.oldJpeg && { oldJpeg: true }),
  };
}

function traits(tags: Tags): Omit<Picture, 'type'> {
  const [width, height] = [tags.get(TAG.width)?.value, tags.get(TAG.height)?.value];
  const photometric = tags.get(TAG.photometric)?.value;
  return {
    ...(width !== undefined && height !== undefined && { width, height }),
    cmyk: photometric === PHOTOMETRIC.separated,
    lab: LAB.includes(photometric),
    metadata: METADATA.filter(({ tag }) => tags.has(tag)).map(({ kind }) => kind),
  };
}

async function profileOf(bytes: Bytes, tags: Tags): Promise<Profile> {
  const tag = tags.get(TAG.profile);
  return tag ? readProfile(bytes, tag.value, tag.count) : 'none';
}
