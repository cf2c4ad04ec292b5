/** @module Reads a TIFF or BigTIFF (TIFF 6.0), and recognizes what ImageMagick misreads. */
import { type ColourModel, readProfile } from '../colour/icc.ts';
import type { WindowReader } from '../containers/file.ts';
import { TAG, type Tags, TiffReader } from '../containers/ifd.ts';
import { isOrientation, readResolution } from '../exif.ts';
import type { ImageFacts, MetadataKind, Page, PixelFormat, Profile, Size } from '../image-info.ts';
import type { Kind } from '../kinds.ts';

/** Values of PhotometricInterpretation (TIFF 6.0, section 8; Adobe; DNG and TIFF/EP for cfa). */
export const PHOTOMETRIC = {
  whiteIsZero: 0,
  blackIsZero: 1,
  rgb: 2,
  palette: 3,
  mask: 4,
  separated: 5,
  yCbCr: 6,
  cieLab: 8,
  iccLab: 9,
  ituLab: 10,
  cfa: 32803,
} as const;

export const COMPRESSION = {
  fax3: 3,
  fax4: 4,
  lzw: 5,
  oldJpeg: 6,
  jpeg: 7,
  deflate: 8,
  lzma: 34925,
  zstd: 50000,
} as const;
/** Compressions for which libtiff implements predictors; 32946 is Deflate, too. */
const PREDICTED: readonly number[] = [
  COMPRESSION.lzw,
  COMPRESSION.deflate,
  32946,
  COMPRESSION.lzma,
  COMPRESSION.zstd,
];

const SAMPLE_FORMATS = { signed: 2, float: 3 } as const;
const PLANAR = 2;
const CMYK_INKS = 1;
/** Values of ExtraSamples: associated (premultiplied) and unassociated alpha. */
const ALPHA: readonly number[] = [1, 2];

type TiffEncoding = Awaited<ReturnType<typeof readEncoding>>;

/** Coefficients of ITU-R BT.601, the default. */
const BT601 = [0.299, 0.587, 0.114];

/** Reads how the pixels of a page are stored, with the defaults of the specification. */
async function readEncoding(tiff: TiffReader, tags: Tags) {
  const value = (tag: number): number | undefined => tags.get(tag)?.value;
  const list = async (tag: number, max: number): Promise<number[] | undefined> => {
    const entry = tags.get(tag);
    return entry && tiff.numbers(entry, max);
  };
  const photometric = value(TAG.photometric);
  const samples = value(TAG.samplesPerPixel) ?? 1;
  const isYCbCr = photometric === PHOTOMETRIC.yCbCr;
  const depths = (await list(TAG.bitsPerSample, MAX_SAMPLES)) ?? [];
  const [bits = 1] = depths;
  const [sampleFormat = 1] = (await list(TAG.sampleFormat, 1)) ?? [];
  const [horizontal = 2, vertical = 2] = (isYCbCr && (await list(TAG.yCbCrSubsampling, 2))) || [];
  const matrix = tags.get(TAG.yCbCrCoefficients);
  const coefficients = isYCbCr && matrix?.count === 3 ? await tiff.fractions(matrix, 3) : [];
  const declared = (await list(TAG.extraSamples, MAX_SAMPLES)) ?? [];
  const extra = Math.max(0, Math.min(samples, MAX_SAMPLES) - colourSamples(photometric));
  const stated = colourSamples(photometric) + declared.length;
  return {
    photometric,
    samples,
    bits,
    sampleFormat,
    /** Whether other tags contradict the number of samples, so that pixels would be misread. */
    contradictory:
      (TRUE_COLOURS.includes(photometric) && samples < 3) ||
      (declared.length > 0 && depths.length === stated && samples !== stated),
    /** Whether other samples have a different number of bits. */
    uneven: depths.some((one) => one !== bits),
    compression: value(TAG.compression) ?? 1,
    predictor: value(TAG.predictor) ?? 1,
    planar: value(TAG.planarConfiguration) === PLANAR,
    tiled: tags.has(TAG.tileWidth),
    inkSet: value(TAG.inkSet) ?? CMYK_INKS,
    /** Values of ExtraSamples, one for every sample beyond those of the colour space. */
    extraSamples: Array.from({ length: extra }, (_, at) => declared[at] ?? 0),
    subsampled: isYCbCr && (horizontal > 1 || vertical > 1),
    /** Whether the YCbCr coefficients differ from the default. */
    hasOwnMatrix: coefficients.some((one, at) => Math.abs(one - (BT601[at] ?? 0)) > 0.001),
  };
}

/** Maximum number of samples to read. Later ones have no effect. */
const MAX_SAMPLES = 16;

function colourSamples(photometric: number | undefined): number {
  if (photometric === PHOTOMETRIC.separated) return 4;
  return photometric !== undefined && GREYS.includes(photometric) ? 1 : 3;
}

const GREYS: readonly (number | undefined)[] = [
  PHOTOMETRIC.whiteIsZero,
  PHOTOMETRIC.blackIsZero,
  PHOTOMETRIC.palette,
  PHOTOMETRIC.mask,
  PHOTOMETRIC.cfa,
];

/** Compressions that libtiff of Debian 12 and 13 lacks: Aperio, Leadtools, DNG 1.7 (tiff.h). */
const JPEG_2000: readonly number[] = [33003, 33005, 34712];
const JPEG_XL: readonly number[] = [50002, 52546];

const KIND_RULES: Readonly<Partial<Record<Kind, (encoding: TiffEncoding) => boolean>>> = {
  'old-jpeg': ({ compression }) => compression === COMPRESSION.oldJpeg,
  'ycbcr-subsampled': (encoding) => encoding.subsampled && !isJpeg(encoding),
  'ycbcr-matrix': (encoding) => encoding.hasOwnMatrix && !isJpeg(encoding),
  'stray-predictor': ({ predictor, compression }) => predictor > 1 && !PREDICTED.includes(compression),
  'signed-samples': ({ sampleFormat, photometric, bits }) =>
    sampleFormat === SAMPLE_FORMATS.signed && !(photometric === PHOTOMETRIC.blackIsZero && bits === 16),
  'samples-24': ({ bits, sampleFormat }) => bits === 24 && sampleFormat !== SAMPLE_FORMATS.float,
  'samples-64': ({ bits, sampleFormat }) => bits === 64 && sampleFormat !== SAMPLE_FORMATS.float,
  'uneven-samples': ({ uneven }) => uneven,
  'white-half-float': ({ photometric, sampleFormat, bits }) =>
    photometric === PHOTOMETRIC.whiteIsZero && sampleFormat === SAMPLE_FORMATS.float && bits === 16,
  'planar-grey-alpha': ({ planar, photometric, extraSamples }) =>
    planar && GREYS.includes(photometric) && extraSamples.length > 0,
  'planar-alpha-first': ({ planar, extraSamples }) =>
    planar && extraSamples.length > 1 && ALPHA.includes(extraSamples[0] ?? 0),
  'planar-unused-channel': ({ planar, extraSamples }) =>
    planar && extraSamples.some((one) => !ALPHA.includes(one)),
  'palette-extra-channel': ({ photometric, planar, extraSamples }) =>
    photometric === PHOTOMETRIC.palette && !planar && extraSamples.length > 0,
  'alpha-not-first': ({ planar, extraSamples }) =>
    !planar && hasAlpha(extraSamples) && !ALPHA.includes(extraSamples[0] ?? 0),
  'other-inks': ({ photometric, inkSet, samples }) =>
    photometric === PHOTOMETRIC.separated && (inkSet !== CMYK_INKS || samples < 4),
  'float-lab': ({ photometric, sampleFormat }) =>
    photometric === PHOTOMETRIC.cieLab && sampleFormat === SAMPLE_FORMATS.float,
  'jpeg-lab': (encoding) => isJpeg(encoding) && encoding.photometric === PHOTOMETRIC.cieLab,
  'lightness-only': ({ photometric, samples }) => photometric === PHOTOMETRIC.cieLab && samples < 3,
  'icc-lab': ({ photometric }) => photometric === PHOTOMETRIC.iccLab || photometric === PHOTOMETRIC.ituLab,
  'sensor-mosaic': ({ photometric }) => photometric === PHOTOMETRIC.cfa,
  'tiled-cmyk-jpeg': (encoding) =>
    encoding.tiled && isJpeg(encoding) && encoding.photometric === PHOTOMETRIC.separated,
  'tiff-jpeg-2000': ({ compression }) => JPEG_2000.includes(compression),
  'tiff-jpeg-xl': ({ compression }) => JPEG_XL.includes(compression),
};

/** Returns whether greys become negative: ImageMagick ignores WhiteIsZero in some depths. */
function isInverted({ photometric, bits, sampleFormat, extraSamples }: TiffEncoding): boolean {
  if (photometric !== PHOTOMETRIC.whiteIsZero) return false;
  return ![1, 8, 16].includes(bits) || sampleFormat === SAMPLE_FORMATS.float || extraSamples.length > 0;
}

function isJpeg({ compression }: TiffEncoding): boolean {
  return compression === COMPRESSION.jpeg || compression === COMPRESSION.oldJpeg;
}

function hasAlpha(extraSamples: readonly number[]): boolean {
  return extraSamples.some((one) => ALPHA.includes(one));
}

const METADATA: readonly (readonly [tag: number, kind: MetadataKind])[] = [
  [TAG.xmp, 'xmp'],
  [TAG.iptc, 'iptc'],
  [TAG.exif, 'exif'],
  [TAG.gps, 'exif'],
];
/** Compressions whose pages ImageMagick reads as libtiff's RGBA, which is partly upright. */
const TURNED_BY_DECODER: readonly number[] = [COMPRESSION.fax3, COMPRESSION.jpeg];
/** Bits of NewSubfileType: a reduced-resolution version, or the mask, of another page. */
const NO_PAGE = 1 | 4;
/** The same in the older SubfileType. */
const REDUCED = 2;
const LAB: readonly (number | undefined)[] = [PHOTOMETRIC.cieLab, PHOTOMETRIC.iccLab, PHOTOMETRIC.ituLab];

/** ImageMagick reads these without a palette. */
const TRUE_COLOURS: readonly (number | undefined)[] = [
  PHOTOMETRIC.rgb,
  PHOTOMETRIC.yCbCr,
  PHOTOMETRIC.separated,
];

/** Kinds of pixels by PhotometricInterpretation. Pixels in Lab need no profile. */
export const COLOUR_MODELS: Readonly<Record<number, ColourModel>> = {
  [PHOTOMETRIC.whiteIsZero]: 'grey',
  [PHOTOMETRIC.blackIsZero]: 'grey',
  [PHOTOMETRIC.rgb]: 'rgb',
  [PHOTOMETRIC.palette]: 'rgb',
  [PHOTOMETRIC.separated]: 'cmyk',
  [PHOTOMETRIC.yCbCr]: 'rgb',
};

/** Reads the pages of a TIFF and their properties (TIFF 6.0, sections 2, 8, 16, 22 and 23). */
export async function readTiff(bytes: WindowReader): Promise<ImageFacts> {
  const tiff = await TiffReader.open(bytes);
  if (!tiff) return {};
  const pages: Page[] = [];
  let facts: ImageFacts = {};
  let pixels: PixelFormat | undefined;
  let index = 0;
  for await (const { offset } of tiff.directories()) {
    const tags = await tiff.tags(offset);
    const encoding = await readEncoding(tiff, tags);
    if (index === 0) pixels = pixelsOf(tags, encoding);
    if (isPage(tags)) {
      const common = {
        ...sizeOf(tags),
        ...(await readResolution(tiff, tags)),
        ...coloursOf(encoding),
        profile: await profileOf(bytes, tags),
      };
      const metadata = METADATA.filter(([tag]) => tags.has(tag)).map(([, kind]) => kind);
      if (pages.length === 0) facts = { ...common, deep: encoding.bits > 8, metadata, pages };
      pages.push({ ...pageOf(index, tags, encoding), ...common });
    }
    index += 1;
  }
  return { ...facts, pixels };
}

function pixelsOf(tags: Tags, { photometric, bits, extraSamples }: TiffEncoding): PixelFormat {
  const profile = tags.get(TAG.profile);
  const isGrey = GREYS.includes(photometric) && photometric !== PHOTOMETRIC.palette;
  const other = LAB.includes(photometric) ? 'lab' : isGrey ? 'grey' : 'rgb';
  return {
    alpha: hasAlpha(extraSamples),
    bits,
    colourSpace: photometric === PHOTOMETRIC.separated ? 'cmyk' : other,
    profile: profile && { at: profile.value, length: profile.count },
  };
}

/** Returns whether a directory is a page, not a smaller version or the mask of one. */
export function isPage(tags: Tags): boolean {
  const isPart =
    ((tags.get(TAG.newSubfileType)?.value ?? 0) & NO_PAGE) !== 0 ||
    tags.get(TAG.subfileType)?.value === REDUCED;
  return !isPart && tags.get(TAG.photometric)?.value !== PHOTOMETRIC.mask;
}

function pageOf(index: number, tags: Tags, encoding: TiffEncoding): Page {
  const { photometric, compression, bits, samples, extraSamples } = encoding;
  const grey = photometric === PHOTOMETRIC.whiteIsZero || photometric === PHOTOMETRIC.blackIsZero;
  const isBilevel = grey && bits === 1 && samples === 1;
  const stored = tags.get(TAG.orientation)?.value;
  const orientation = isOrientation(stored) ? stored : 1; // ImageMagick rejects other values
  const kinds = (Object.keys(KIND_RULES) as Kind[]).filter((kind) => KIND_RULES[kind]?.(encoding));
  return {
    index,
    paletteKind: photometric === PHOTOMETRIC.palette ? 'palette' : isBilevel ? 'bilevel' : undefined,
    trueColour: TRUE_COLOURS.includes(photometric),
    ycc: photometric === PHOTOMETRIC.yCbCr && !isJpeg(encoding), // that of JPEG is decoded as RGB
    inverted: isInverted(encoding),
    // ImageMagick 6 would use the first of these samples as alpha.
    unusedSamples: extraSamples.length > 0 && !hasAlpha(extraSamples),
    // libtiff premultiplies JPEG with three colours.
    premultiplied: isJpeg(encoding) && colourSamples(photometric) === 3 && hasAlpha(extraSamples),
    // The decoder applies a part of the orientation of such a page.
    mirroredFor: TURNED_BY_DECODER.includes(compression) ? orientation : undefined,
    orientation,
    contradictory: encoding.contradictory,
    kinds,
  };
}

function sizeOf(tags: Tags): Partial<Size> {
  const [width, height] = [tags.get(TAG.width)?.value, tags.get(TAG.height)?.value];
  return width !== undefined && height !== undefined ? { width, height } : {};
}

function coloursOf({ photometric }: TiffEncoding): { cmyk?: true; lab?: true } {
  if (photometric === PHOTOMETRIC.separated) return { cmyk: true };
  return LAB.includes(photometric) ? { lab: true } : {};
}

async function profileOf(bytes: WindowReader, tags: Tags): Promise<Profile> {
  const tag = tags.get(TAG.profile);
  const model = COLOUR_MODELS[tags.get(TAG.photometric)?.value ?? -1];
  return tag ? readProfile(bytes, tag.value, tag.count, model) : 'none';
}
