/** @module Compares two images, decoded or as fingerprints, and lists what exceeds limits. */
import { type Difference, measureDifference, ROUNDING } from './image/difference.ts';
import { distance } from './image/fingerprint.ts';
import type { DecodedImage, ImageMetadata, Raster } from './image/image.ts';
import type { ResultFingerprint } from './record.ts';
import type { Thresholds } from './thresholds.ts';
import { type Comparison, comparisonWith, type Reason, type ReasonKind } from './verdict.ts';

/** Lists the metadata that differ, as `before → after`. */
export function metadataReasons(before: ImageMetadata, after: ImageMetadata): Reason[] {
  return METADATA_FIELDS.flatMap(([kind, format]) => {
    const [one, other] = [format(before), format(after)];
    return one === other ? [] : { kind, text: `${one} → ${other}` };
  });
}

const METADATA_FIELDS: readonly (readonly [ReasonKind, (metadata: ImageMetadata) => string])[] = [
  ['size', ({ width, height }) => `${width} × ${height}`],
  ['frames', ({ frames }) => `${frames} ${frames === 1 ? 'frame or page' : 'frames or pages'}`],
  ['timing', ({ delays }) => (delays ? `delays ${delays.join(' ')} ms` : 'no delays')],
  [
    'timing',
    ({ delays, plays = 0 }) =>
      delays ? `plays ${plays === 0 ? 'forever' : `${plays} times`}` : 'not animated',
  ],
  ['alpha', ({ alpha }) => (alpha ? 'transparency' : 'no transparency')],
  ['depth', ({ depth = 8 }) => `${depth} bits per channel`],
  ['profile', ({ profile }) => (profile ? `colour profile ${profile}` : 'no colour profile')],
  ['metadata', ({ metadata }) => (metadata ? `metadata ${metadata.join(', ')}` : 'no metadata')],
];

/** Kinds of change after which the pixels cannot be compared. */
const SHAPE_KINDS: readonly ReasonKind[] = ['size', 'frames'];

/** Compares images of different shapes or with equal pixels; undefined for others. */
function compareWithoutPixels(reasons: readonly Reason[], areEqual: () => boolean): Comparison | undefined {
  if (!reasons.some(({ kind }) => SHAPE_KINDS.includes(kind)) && !areEqual()) return undefined;
  return { verdict: reasons.length > 0 ? 'changed' : 'same', reasons, remarks: [] };
}

function haveEqualPixels({ frames }: DecodedImage, { frames: others }: DecodedImage): boolean {
  const isEqual = ({ width, data }: Raster, other: Raster | undefined): boolean =>
    width === other?.width && Buffer.compare(data, other.data) === 0;
  return frames.length === others.length && frames.every((frame, at) => isEqual(frame, others[at]));
}

/** Compares two decoded images pixel by pixel. */
export function comparePixels(
  before: DecodedImage,
  after: DecodedImage,
  reasons: readonly Reason[],
  allowed: Thresholds,
): Comparison {
  const known = compareWithoutPixels(reasons, () => haveEqualPixels(before, after));
  if (known) return known;
  const worst = worstFrame(before, after, allowed);
  if (!worst) return comparisonWith('changed', 'size', 'a page has a different size');
  const all = [...reasons, ...pixelReasons(worst, allowed)];
  return { verdict: all.length > 0 ? 'changed' : 'similar', reasons: all, remarks: [], difference: worst };
}

/**
 * Finds the frame or page that differs most. Frames that exceed a threshold rank before all others.
 *
 * @returns undefined if two pages differ in size; frames of an animation cannot
 */
function worstFrame(
  before: DecodedImage,
  after: DecodedImage,
  allowed: Thresholds,
): (Difference & { frame: number }) | undefined {
  const opaque = !before.facts.alpha && !after.facts.alpha;
  const exceeds = (one: Difference) => Number(pixelReasons(one, allowed).length > 0);
  let worst: (Difference & { frame: number }) | undefined;
  for (const [frame, raster] of before.frames.entries()) {
    const other = after.frames[frame];
    if (other?.width !== raster.width || other.height !== raster.height) return undefined;
    const found = measureDifference(raster, other, opaque, allowed.max);
    const order = worst ? exceeds(found) - exceeds(worst) || worst.psnr - found.psnr : 1;
    if (order > 0) worst = { ...found, frame };
  }
  return worst;
}

/** Returns a difference of pixels as a reason, if it exceeds a threshold. */
const reasonIf = (exceeds: boolean, text: string): Reason[] => (exceeds ? [{ kind: 'pixels', text }] : []);

function pixelReasons(found: Difference, allowed: Thresholds): Reason[] {
  return PIXEL_LIMITS.flatMap(({ limit, isAbove, describe }) => {
    const [value, allows] = [found[limit], allowed[limit]];
    if (value === undefined || allows === undefined) return [];
    const text = `${describe(found, allowed)}, ${isAbove ? 'maximum' : 'minimum'} ${allows}`;
    return reasonIf(isAbove ? value > allows : value < allows, text);
  });
}

/** Limits of a difference: upper or lower, and how reports state the value. */
const PIXEL_LIMITS: readonly {
  readonly limit: 'area' | 'psnr' | 'ssim' | 'patch' | 'deltaE';
  readonly isAbove: boolean;
  describe(found: Difference, allowed: Thresholds): string;
}[] = [
  {
    limit: 'area',
    isAbove: true,
    describe: ({ area, max }, allowed) =>
      `${area} pixels of a block differ by more than ${allowed.max ?? ROUNDING} of 255 (the most by ${max})`,
  },
  { limit: 'psnr', isAbove: false, describe: ({ psnr }) => `PSNR ${psnr.toFixed(1)} dB` },
  { limit: 'ssim', isAbove: false, describe: ({ ssim }) => `SSIM ${ssim?.toFixed(4)}` },
  { limit: 'patch', isAbove: true, describe: ({ patch }) => `worst block ${patch.toFixed(1)} of 255` },
  {
    limit: 'deltaE',
    isAbove: true,
    describe: ({ deltaE }) => `colours shifted by ΔE 2000 of ${deltaE.toFixed(2)}`,
  },
];

/** Compares two images by their fingerprints, if a baseline holds no result files. */
export function compareFingerprints(
  before: ResultFingerprint,
  after: ResultFingerprint,
  reasons: readonly Reason[],
  allowed: Thresholds,
): Comparison {
  const known = compareWithoutPixels(reasons, () => before.pixels === after.pixels);
  if (known) return known;
  const delta = distance(before.fingerprints, after.fingerprints);
  const { means, sharpness } = delta;
  const [differs, limit] = [percent(sharpness), percent(allowed.sharpness)];
  const shifted = `mean colour of a cell differs by ${means} of 255, maximum ${allowed.means}`;
  const blurred = `sharpness of a cell differs by ${differs}, maximum ${limit}`;
  const all = [
    ...reasons,
    ...reasonIf(means > allowed.means, shifted),
    ...reasonIf(sharpness > allowed.sharpness, blurred),
  ];
  return { verdict: all.length > 0 ? 'changed' : 'similar', reasons: all, remarks: [], distance: delta };
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
