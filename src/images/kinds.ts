/** @module All kinds of files that are rejected: a clear error is better than a wrong image. */

/** A kind of file that tools decode wrongly without an error, or not at all though valid. */
export interface KindRow {
  /** Names the kind in the error message: "FILE uses an unsupported encoding (…)". */
  readonly label: string;
  /**
   * When it is rejected: with these major versions of ImageMagick, which misread it; always, since
   * no tool shows it correctly; or only if its conversion fails, since some versions of the
   * libraries decode it.
   */
  readonly refused: readonly (6 | 7)[] | 'always' | 'on failure';
}

const BOTH = [6, 7] as const;

const rows = <Name extends string>(kinds: Readonly<Record<Name, KindRow>>) => kinds;

/**
 * The kinds, measured with ImageMagick 6.9.11-60 and 7.1.1-43. The readers beside this file
 * recognize them by the header.
 *
 * `fixtures/traps/` has a file of each kind that a version of ImageMagick misreads, with its name.
 * The tests check for every row and version that it is still misread. If they fail with a newer
 * ImageMagick, remove the version from the row.
 */
export const KINDS = rows({
  'old-jpeg': { label: 'old-style JPEG in a TIFF', refused: [6] },
  'ycbcr-subsampled': { label: 'subsampled YCbCr colours outside of JPEG in a TIFF', refused: BOTH },
  'ycbcr-matrix': { label: 'YCbCr colours and coefficients of its own in a TIFF', refused: BOTH },
  'stray-predictor': { label: 'a predictor without LZW or Deflate in a TIFF', refused: BOTH },
  'signed-samples': { label: 'signed samples in a TIFF', refused: BOTH },
  'samples-24': { label: '24 bits per sample in a TIFF', refused: [6] },
  'samples-64': { label: '64 bits per sample in a TIFF', refused: BOTH },
  'uneven-samples': { label: 'samples of different sizes in a TIFF', refused: BOTH },
  'white-half-float': { label: '16-bit float samples whose white is 0 in a TIFF', refused: BOTH },
  'planar-grey-alpha': { label: 'extra channels in a planar greyscale TIFF', refused: BOTH },
  'planar-unused-channel': { label: 'extra channels that are not alpha in a planar TIFF', refused: [7] },
  'palette-extra-channel': { label: 'extra channels with a palette in a TIFF', refused: [7] },
  'planar-alpha-first': { label: 'more channels after alpha in a planar TIFF', refused: BOTH },
  'alpha-not-first': { label: 'other extra channels before alpha in a TIFF', refused: BOTH },
  'other-inks': { label: 'other inks than CMYK in a TIFF', refused: BOTH },
  'float-lab': { label: 'CIELab colours as floats in a TIFF', refused: BOTH },
  'jpeg-lab': { label: 'CIELab colours as JPEG in a TIFF', refused: BOTH },
  'lightness-only': { label: 'the lightness of CIELab only in a TIFF', refused: [6] },
  'icc-lab': { label: 'ICCLab or ITULab colours in a TIFF', refused: BOTH },
  'sensor-mosaic': { label: 'raw data of a sensor in a TIFF', refused: [7] },
  'tiled-cmyk-jpeg': { label: 'tiles of CMYK JPEG in a TIFF', refused: BOTH },
  'alpha-without-properties': { label: 'an AVIF whose alpha states no size', refused: [6] },
  'ycgco-re': { label: 'an AVIF or HEIC with the lossless colours YCgCo-R', refused: [6] },
  'bmp-header': { label: 'a header of OS/2 2.x, or of 52 bytes, in a BMP', refused: BOTH },
  'bmp-masks': { label: 'bit masks other than 5-5-5, 5-6-5 or from 8 bits on in a BMP', refused: BOTH },
  'bmp-2-bits': { label: '2 bits per pixel in a BMP', refused: BOTH },
  'bmp-alpha-bit-fields': { label: 'the compression BI_ALPHABITFIELDS in a BMP', refused: BOTH },
  'icon-bitmap': {
    label: 'bit masks, 2 or 16 bits per pixel, rows from the top or a longer header in an icon',
    refused: BOTH,
  },
  'sequence-alpha': {
    label: 'an AVIF or HEIC sequence of which only the frames have transparency',
    refused: 'always',
  },
  'jpeg-xl-cmyk': { label: 'JPEG XL with CMYK colours', refused: 'always' },
  'jp2-colours': {
    label: 'JPEG 2000 with other colours than greys, RGB, sRGB or sYCC, such as CMYK or CIELab',
    refused: 'always',
  },
  'jp2-subsampled': { label: 'JPEG 2000 whose samples do not match its size', refused: 'always' },
  'psd-without-merged-image': {
    label: 'PSD without a merged image, saved without "Maximize Compatibility"',
    refused: 'always',
  },
  'psd-layers': { label: 'PSD with more than 8000 layers', refused: 'always' },
  'psd-mode': { label: 'PSD with multichannel colours or 32 bits per channel', refused: 'always' },
  'jpeg-process': { label: 'lossless, hierarchical or 12-bit JPEG', refused: 'on failure' },
  'tiff-jpeg-2000': { label: 'JPEG 2000 compression in a TIFF', refused: 'on failure' },
  'tiff-jpeg-xl': { label: 'JPEG XL compression in a TIFF', refused: 'on failure' },
  'jpeg-xl-alpha-depth': {
    label: 'JPEG XL with transparency of other than 8 or 16 bits, or of fewer bits than its colours',
    refused: 'on failure',
  },
  'bmp-runs': {
    label: 'run-length encoding that skips pixels or ends early in a BMP',
    refused: 'on failure',
  },
});

export type Kind = keyof typeof KINDS;
