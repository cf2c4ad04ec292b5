/**
 * @module Which program decodes an input correctly: ImageMagick, an external program that writes a PNG, or none, so that the
 * input is rejected. Pure.
 */
import { INPUTS, type InputType, isHeif } from '../../formats.ts';
import type { MisreadKind } from '../../images/image-info.ts';
import type { ToolName } from '../../tools.ts';
import { type ConversionJob, MAGICK_FEATURES } from './types.ts';

/** Returns the external program that decodes files of this type; undefined if ImageMagick reads them itself. */
export function externalDecoder(type: InputType, magick: 6 | 7): ToolName | undefined {
  if (type === 'jxl') return 'djxl';
  if (isHeif(type)) return MAGICK_FEATURES[magick].heif === 'heif' ? 'heif' : undefined;
  return undefined;
}

/** Returns the coder with which ImageMagick reads files of this type; undefined if another program decodes them. */
export function magickDecoder(type: InputType, magick: 6 | 7): string | undefined {
  return externalDecoder(type, magick) ? undefined : INPUTS[type].coder;
}

/** A kind of file that ImageMagick decodes to a wrong image without an error, or not at all although it is valid. */
interface MisreadRow {
  /** Names the kind in the error message: "FILE uses an unsupported encoding (…)". */
  readonly label: string;
  /** Major versions of ImageMagick that misread it. */
  readonly by: readonly (6 | 7)[];
  /** A file of this kind in `fixtures/traps/`. */
  readonly fixture: string;
}

const BOTH = [6, 7] as const;

/**
 * All kinds of files that ImageMagick is known to misread, measured with versions 6.9.11-60 and 7.1.1-43. The readers
 * in `images/` recognize them by the header. Files of these kinds are rejected: a clear error is better than a wrong
 * image.
 *
 * The tests check for every row and version that the fixture is still misread. If they fail with a newer ImageMagick,
 * remove the version from the row.
 */
export const MISREAD_KINDS: Readonly<Record<MisreadKind, MisreadRow>> = {
  'old-jpeg': { label: 'old-style JPEG in a TIFF', by: [6], fixture: 'old-jpeg.tiff' },
  'ycbcr-subsampled': {
    label: 'subsampled YCbCr colours outside of JPEG in a TIFF',
    by: BOTH,
    fixture: 'ycbcr-subsampled.tiff',
  },
  'ycbcr-matrix': {
    label: 'YCbCr colours and coefficients of its own in a TIFF',
    by: BOTH,
    fixture: 'ycbcr-matrix.tiff',
  },
  'stray-predictor': {
    label: 'a predictor without LZW or Deflate in a TIFF',
    by: BOTH,
    fixture: 'stray-predictor.tiff',
  },
  'signed-samples': { label: 'signed samples in a TIFF', by: BOTH, fixture: 'signed-samples.tiff' },
  'samples-24': { label: '24 bits per sample in a TIFF', by: [6], fixture: 'samples-24.tiff' },
  'samples-64': { label: '64 bits per sample in a TIFF', by: BOTH, fixture: 'samples-64.tiff' },
  'uneven-samples': {
    label: 'samples of different sizes in a TIFF',
    by: BOTH,
    fixture: 'uneven-samples.tiff',
  },
  'white-half-float': {
    label: '16-bit float samples whose white is 0 in a TIFF',
    by: BOTH,
    fixture: 'white-half-float.tiff',
  },
  'planar-grey-alpha': {
    label: 'extra channels in a planar greyscale TIFF',
    by: BOTH,
    fixture: 'planar-grey-alpha.tiff',
  },
  'planar-unused': {
    label: 'extra channels that are not alpha in a planar TIFF',
    by: [7],
    fixture: 'planar-unused-channel.tiff',
  },
  'planar-alpha-first': {
    label: 'more channels after alpha in a planar TIFF',
    by: BOTH,
    fixture: 'planar-alpha-first.tiff',
  },
  'alpha-not-first': {
    label: 'other extra channels before alpha in a TIFF',
    by: BOTH,
    fixture: 'alpha-not-first.tiff',
  },
  'other-inks': { label: 'other inks than CMYK in a TIFF', by: BOTH, fixture: 'other-inks.tiff' },
  'float-lab': { label: 'CIELab colours as floats in a TIFF', by: BOTH, fixture: 'float-lab.tiff' },
  'jpeg-lab': { label: 'CIELab colours as JPEG in a TIFF', by: BOTH, fixture: 'jpeg-lab.tiff' },
  'lightness-only': {
    label: 'the lightness of CIELab only in a TIFF',
    by: [6],
    fixture: 'lightness-only.tiff',
  },
  'icc-lab': { label: 'ICCLab or ITULab colours in a TIFF', by: BOTH, fixture: 'icc-lab.tiff' },
  'sensor-mosaic': { label: 'raw data of a sensor in a TIFF', by: [7], fixture: 'sensor-mosaic.tiff' },
  'tiled-cmyk-jpeg': {
    label: 'tiles of CMYK JPEG in a TIFF',
    by: BOTH,
    fixture: 'tiled-cmyk-jpeg.tiff',
  },
  'alpha-without-size': {
    label: 'an AVIF whose alpha states no size',
    by: [6],
    fixture: 'alpha-without-properties.avif',
  },
};

/** Returns the label of the first kind, of the file or a page to convert, that this version of ImageMagick misreads. */
export function misreadLabel({ image, pages, tools }: ConversionJob): string | undefined {
  const kinds = [image, ...pages].flatMap(({ misread = [] }) => misread);
  const found = kinds.find((kind) => MISREAD_KINDS[kind].by.includes(tools.magick));
  return found && MISREAD_KINDS[found].label;
}
