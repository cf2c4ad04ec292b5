import { selectedPages } from './selection.ts';
import type { MisreadKind, PlanContext } from './types.ts';

/** A kind of file that ImageMagick decodes to a wrong image without an error, or not at all although it is valid. */
interface MisreadRow {
  /** Names the kind in the error message: "FILE is …". */
  readonly label: string;
  /** Major versions of ImageMagick that misread it. */
  readonly by: readonly (6 | 7)[];
  /** A file of this kind in `fixtures/traps/`. */
  readonly fixture: string;
}

const BOTH = [6, 7] as const;

/**
 * All kinds of files that ImageMagick is known to misread, measured with versions 6.9.11-60 and 7.1.1-43. The readers in
 * `inspect/` recognize them by the header. Files of these kinds are rejected: a clear error is better than a wrong image.
 *
 * The tests check for every row and version that the fixture is still misread. If they fail with a newer ImageMagick,
 * remove the version from the row.
 */
export const MISREAD_KINDS: Readonly<Record<MisreadKind, MisreadRow>> = {
  'old-jpeg': { label: 'a TIFF with old-style JPEG inside', by: [6], fixture: 'old-jpeg.tiff' },
  'ycbcr-subsampled': {
    label: 'a TIFF with subsampled YCbCr colours outside of JPEG',
    by: BOTH,
    fixture: 'ycbcr-subsampled.tiff',
  },
  'ycbcr-matrix': {
    label: 'a TIFF with YCbCr colours and coefficients of its own',
    by: BOTH,
    fixture: 'ycbcr-matrix.tiff',
  },
  'stray-predictor': {
    label: 'a TIFF with a predictor but without LZW or Deflate',
    by: BOTH,
    fixture: 'stray-predictor.tiff',
  },
  'signed-samples': { label: 'a TIFF with signed samples', by: BOTH, fixture: 'signed-samples.tiff' },
  'samples-24': { label: 'a TIFF with 24 bits per sample', by: [6], fixture: 'samples-24.tiff' },
  'samples-64': { label: 'a TIFF with 64 bits per sample', by: BOTH, fixture: 'samples-64.tiff' },
  'uneven-samples': {
    label: 'a TIFF whose samples differ in size',
    by: BOTH,
    fixture: 'uneven-samples.tiff',
  },
  'white-half-float': {
    label: 'a TIFF with 16-bit float samples whose white is 0',
    by: BOTH,
    fixture: 'white-half-float.tiff',
  },
  'planar-grey-alpha': {
    label: 'a planar greyscale TIFF with extra channels',
    by: BOTH,
    fixture: 'planar-grey-alpha.tiff',
  },
  'planar-unused': {
    label: 'a planar TIFF with extra channels that are not alpha',
    by: [7],
    fixture: 'planar-unused.tiff',
  },
  'planar-alpha-first': {
    label: 'a planar TIFF with more channels after alpha',
    by: BOTH,
    fixture: 'planar-alpha-first.tiff',
  },
  'alpha-not-first': {
    label: 'a TIFF with other extra channels before alpha',
    by: BOTH,
    fixture: 'alpha-not-first.tiff',
  },
  'other-inks': { label: 'a TIFF with other inks than CMYK', by: BOTH, fixture: 'other-inks.tiff' },
  'float-lab': { label: 'a TIFF with CIELab colours as floats', by: BOTH, fixture: 'float-lab.tiff' },
  'lightness-only': {
    label: 'a TIFF with the lightness of CIELab only',
    by: [6],
    fixture: 'lightness-only.tiff',
  },
  'icc-lab': { label: 'a TIFF with ICCLab or ITULab colours', by: BOTH, fixture: 'icc-lab.tiff' },
  'sensor-mosaic': { label: 'a TIFF with raw data of a sensor', by: [7], fixture: 'sensor-mosaic.tiff' },
  'tiled-cmyk-jpeg': {
    label: 'a TIFF with tiles of CMYK JPEG',
    by: BOTH,
    fixture: 'tiled-cmyk-jpeg.tiff',
  },
};

/** Returns the label of a kind among the images to convert that this ImageMagick misreads. */
export function misreadLabel(job: PlanContext): string | undefined {
  const kinds = selectedPages(job).flatMap(({ misread = [] }) => misread);
  const kind = kinds.find((one) => MISREAD_KINDS[one].by.includes(job.tools.magick));
  return kind && MISREAD_KINDS[kind].label;
}
