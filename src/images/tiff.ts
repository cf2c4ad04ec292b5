/** @module Reads the directories of a TIFF or BigTIFF (TIFF 6.0). */

import { type Tags, TiffReader } from './containers/ifd.ts';
import type { WindowReader } from './containers/window-reader.ts';
import { isOrientation } from './exif.ts';
import { type ColourModel, readProfile } from './icc.ts';
import type { ImageFacts, MetadataKind, Page, Profile, RareEncoding } from './image-info.ts';
import {
  COMPRESSION,
  hasUnusedSamples,
  isInverted,
  isPremultiplied,
  misreadKindsOf,
  PHOTOMETRIC,
  readEncoding,
  type TiffEncoding,
} from './tiff-kinds.ts';

const TAG = {
  newSubfileType: 254,
  width: 256,
  height: 257,
  compression: 259,
  photometric: 262,
  orientation: 274,
  profile: 34675,
} as const;
const METADATA: readonly { readonly tag: number; readonly kind: MetadataKind }[] = [
  { tag: 700, kind: 'xmp' },
  { tag: 33723, kind: 'iptc' },
  { tag: 34665, kind: 'exif' },
  { tag: 34853, kind: 'exif' },
];
/** Bits 0 and 2 of NewSubfileType: a reduced-resolution version, or the transparency mask, of another page. */
const NO_PAGE = 1 | 4;
/** Compressions that libtiff of Debian 12 and 13 does not decode: those of Aperio and Leadtools, and of DNG 1.7 (tiff.h). */
const RARE_COMPRESSIONS: Readonly<Record<number, RareEncoding>> = {
  33003: 'tiff-jpeg-2000',
  33005: 'tiff-jpeg-2000',
  34712: 'tiff-jpeg-2000',
  50002: 'tiff-jpeg-xl',
  52546: 'tiff-jpeg-xl',
};
const LAB: readonly (number | undefined)[] = [PHOTOMETRIC.cieLab, PHOTOMETRIC.iccLab, PHOTOMETRIC.ituLab];

/** Kinds of pixels by PhotometricInterpretation. Pixels in Lab need no profile. */
const COLOUR_MODELS: Readonly<Record<number, ColourModel>> = {
  [PHOTOMETRIC.whiteIsZero]: 'grey',
  [PHOTOMETRIC.blackIsZero]: 'grey',
  [PHOTOMETRIC.rgb]: 'rgb',
  [PHOTOMETRIC.palette]: 'rgb',
  [PHOTOMETRIC.separated]: 'cmyk',
  [PHOTOMETRIC.yCbCr]: 'rgb',
};

/** Reads the pages of a TIFF and their properties (TIFF 6.0, sections 2, 8, 16, 22 and 23). */
export async function readTiff(bytes: WindowReader): Promise<ImageFacts<'tiff'>> {
  const tiff = await TiffReader.open(bytes);
  if (!tiff) return {};
  const pages: Page[] = [];
  let first: Tags | undefined;
  let deep = false;
  let index = 0;
  for await (const { offset } of tiff.directories()) {
    const tags = await tiff.tags(offset);
    if (isPage(tags)) {
      const encoding = await readEncoding(tiff, tags);
      const profile = await profileOf(bytes, tags);
      pages.push({ ...pageOf(index, tags, encoding), ...coloursOf(tags), profile });
      if (!first) deep = encoding.bits > 8;
      first ??= tags;
    }
    index += 1;
  }
  return first
    ? {
        ...{ pages, ...describeFirstPage(first), ...coloursOf(first), ...(deep && { deep }) },
        profile: await profileOf(bytes, first),
      }
    : {};
}

function isPage(tags: Tags): boolean {
  const isPart = ((tags.get(TAG.newSubfileType)?.value ?? 0) & NO_PAGE) !== 0;
  return !isPart && tags.get(TAG.photometric)?.value !== PHOTOMETRIC.mask;
}

function pageOf(index: number, tags: Tags, encoding: TiffEncoding): Page {
  const value = (tag: number): number | undefined => tags.get(tag)?.value;
  const { photometric, compression, bits, samples } = encoding;
  const grey = photometric === PHOTOMETRIC.whiteIsZero || photometric === PHOTOMETRIC.blackIsZero;
  const stored = value(TAG.orientation);
  const orientation = isOrientation(stored) ? stored : 1; // ImageMagick rejects other values
  const [width, height] = [value(TAG.width), value(TAG.height)];
  const misread = misreadKindsOf(encoding);
  return {
    index,
    ...(width !== undefined && height !== undefined && { width, height }),
    ...(photometric === PHOTOMETRIC.palette && { paletteKind: 'palette' }),
    ...(grey && bits === 1 && samples === 1 && { paletteKind: 'bilevel' }),
    ...(isInverted(encoding) && { inverted: true }),
    ...(hasUnusedSamples(encoding) && { unusedSamples: true }),
    ...(isPremultiplied(encoding) && { premultiplied: true }),
    // The decoder applies a part of the orientation of such a page.
    ...(compression === COMPRESSION.jpeg && orientation > 1 && { mirroredFor: orientation }),
    ...(orientation > 1 && { orientation }),
    ...(misread.length > 0 && { misread }),
  };
}

function describeFirstPage(tags: Tags): ImageFacts<'tiff'> {
  const [width, height] = [tags.get(TAG.width)?.value, tags.get(TAG.height)?.value];
  const rareEncoding = RARE_COMPRESSIONS[tags.get(TAG.compression)?.value ?? 1];
  return {
    ...(rareEncoding && { rareEncoding }),
    ...(width !== undefined && height !== undefined && { width, height }),
    metadata: METADATA.filter(({ tag }) => tags.has(tag)).map(({ kind }) => kind),
  };
}

function coloursOf(tags: Tags): { cmyk?: boolean; lab?: boolean } {
  const photometric = tags.get(TAG.photometric)?.value;
  return {
    ...(photometric === PHOTOMETRIC.separated && { cmyk: true }),
    ...(LAB.includes(photometric) && { lab: true }),
  };
}

async function profileOf(bytes: WindowReader, tags: Tags): Promise<Profile> {
  const tag = tags.get(TAG.profile);
  const model = COLOUR_MODELS[tags.get(TAG.photometric)?.value ?? -1];
  return tag ? readProfile(bytes, tag.value, tag.count, model) : 'none';
}
