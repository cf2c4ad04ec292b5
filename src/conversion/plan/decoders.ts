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
}

const BOTH = [6, 7] as const;

/**
 * All kinds of files that ImageMagick is known to misread, measured with versions 6.9.11-60 and 7.1.1-43. The readers
 * in `images/` recognize them by the header. Files of these kinds are rejected: a clear error is better than a wrong
 * image.
 *
 * `fixtures/traps/` has a file of each kind, with its name. The tests check for every row and version that it is still misread.
 * If they fail with a newer ImageMagick, remove the version from the row.
 */
export const MISREAD_KINDS: Readonly<Record<MisreadKind, MisreadRow>> = {
  'old-jpeg': { label: 'old-style JPEG in a TIFF', by: [6] },
  'ycbcr-subsampled': { label: 'subsampled YCbCr colours outside of JPEG in a TIFF', by: BOTH },
  'ycbcr-matrix': { label: 'YCbCr colours and coefficients of its own in a TIFF', by: BOTH },
  'stray-predictor': { label: 'a predictor without LZW or Deflate in a TIFF', by: BOTH },
  'signed-samples': { label: 'signed samples in a TIFF', by: BOTH },
  'samples-24': { label: '24 bits per sample in a TIFF', by: [6] },
  'samples-64': { label: '64 bits per sample in a TIFF', by: BOTH },
  'uneven-samples': { label: 'samples of different sizes in a TIFF', by: BOTH },
  'white-half-float': { label: '16-bit float samples whose white is 0 in a TIFF', by: BOTH },
  'planar-grey-alpha': { label: 'extra channels in a planar greyscale TIFF', by: BOTH },
  'planar-unused-channel': { label: 'extra channels that are not alpha in a planar TIFF', by: [7] },
  'planar-alpha-first': { label: 'more channels after alpha in a planar TIFF', by: BOTH },
  'alpha-not-first': { label: 'other extra channels before alpha in a TIFF', by: BOTH },
  'other-inks': { label: 'other inks than CMYK in a TIFF', by: BOTH },
  'float-lab': { label: 'CIELab colours as floats in a TIFF', by: BOTH },
  'jpeg-lab': { label: 'CIELab colours as JPEG in a TIFF', by: BOTH },
  'lightness-only': { label: 'the lightness of CIELab only in a TIFF', by: [6] },
  'icc-lab': { label: 'ICCLab or ITULab colours in a TIFF', by: BOTH },
  'sensor-mosaic': { label: 'raw data of a sensor in a TIFF', by: [7] },
  'tiled-cmyk-jpeg': { label: 'tiles of CMYK JPEG in a TIFF', by: BOTH },
  'alpha-without-properties': { label: 'an AVIF whose alpha states no size', by: [6] },
};

/** Returns the label of the first kind, of the file or a page to convert, that this version of ImageMagick misreads. */
export function misreadLabel({ image, pages, tools }: ConversionJob): string | undefined {
  const kinds = [image, ...pages].flatMap(({ misread = [] }) => misread);
  const found = kinds.find((kind) => MISREAD_KINDS[kind].by.includes(tools.magick));
  return found && MISREAD_KINDS[found].label;
}
