import { type Difference, measureDifference } from './image/difference.ts';
import { digestOf, distance } from './image/fingerprint.ts';
import type { DecodedImage, ImageMetadata } from './image/image.ts';
import type { Figures } from './recording.ts';
import type { Thresholds } from './thresholds.ts';
import { describeReason, type Outcome, type Reason, type ReasonKind } from './verdict.ts';

/** Two pictures, decoded or in figures → what differs by more than is allowed. Pure. */

/** Every fact that is another one, in words. */
export function factReasons(before: ImageMetadata, after: ImageMetadata): Reason[] {
  return FACTS.flatMap(([kind, say]) => {
    const [one, other] = [say(before), say(after)];
    return one === other ? [] : describeReason(kind, `${one} → ${other}`);
  });
}

const FACTS: readonly (readonly [ReasonKind, (facts: ImageMetadata) => string])[] = [
  ['size', ({ width, height }) => `${width} × ${height}`],
  ['frames', ({ frames }) => `${frames} ${frames === 1 ? 'frame or page' : 'frames or pages'}`],
  ['timing', ({ delays }) => (delays ? `delays ${delays.join(' ')} ms` : 'no delays')],
  [
    'timing',
    ({ delays, plays = 0 }) => (delays ? `plays ${plays === 0 ? 'for ever' : `${plays} times`}` : 'stands'),
  ],
  ['alpha', ({ alpha }) => (alpha ? 'transparency' : 'no transparency')],
  ['depth', ({ depth = 8 }) => `${depth} bits a channel`],
  ['profile', ({ profile }) => (profile ? `colour profile ${profile}` : 'no colour profile')],
  ['metadata', ({ metadata }) => (metadata ? `metadata ${metadata.join(', ')}` : 'no metadata')],
];

/** Reasons after which there is no use in laying one picture over the other. */
const SHAPE: readonly ReasonKind[] = ['size', 'frames'];

/** Verdict on two decoded pictures. */
export function comparePixels(
  before: DecodedImage,
  after: DecodedImage,
  reasons: readonly Reason[],
  allowed: Thresholds,
): Outcome {
  if (reasons.some(({ kind }) => SHAPE.includes(kind))) return { verdict: 'changed', reasons, remarks: [] };
  if (digestOf(before) === digestOf(after)) {
    return { verdict: reasons.length > 0 ? 'changed' : 'same', reasons, remarks: [] };
  }
  const worst = worstFrame(before, after, allowed);
  if (!worst)
    return { verdict: 'changed', reasons: describeReason('size', 'a page has another size'), remarks: [] };
  const all = [...reasons, ...pixelReasons(worst, allowed)];
  return { verdict: all.length > 0 ? 'changed' : 'alike', reasons: all, remarks: [], difference: worst };
}

/** The frame or page that differs most: by more than is allowed, if any does; nothing when one has another size, as only pages can. */
function worstFrame(
  before: DecodedImage,
  after: DecodedImage,
  allowed: Thresholds,
): (Difference & { frame: number }) | undefined {
  const tooFar = (one: Difference) => Number(pixelReasons(one, allowed).length > 0);
  let worst: (Difference & { frame: number }) | undefined;
  for (const [frame, raster] of before.frames.entries()) {
    const other = after.frames[frame];
    if (other?.width !== raster.width || other.height !== raster.height) return undefined;
    const found = measureDifference(raster, other);
    const further = worst ? tooFar(found) - tooFar(worst) || worst.psnr - found.psnr : 1;
    if (further > 0) worst = { ...found, frame };
  }
  return worst;
}

function pixelReasons({ psnr, ssim, patch }: Difference, allowed: Thresholds): Reason[] {
  return [
    ...(psnr < allowed.psnr
      ? describeReason('pixels', `PSNR ${psnr.toFixed(1)} dB, at least ${allowed.psnr}`)
      : []),
    ...(ssim !== undefined && ssim < allowed.ssim
      ? describeReason('pixels', `SSIM ${ssim.toFixed(4)}, at least ${allowed.ssim}`)
      : []),
    ...(patch > allowed.patch
      ? describeReason('pixels', `in one place ${patch.toFixed(1)} of 255, at most ${allowed.patch}`)
      : []),
  ];
}

/** Verdict on two pictures of which only figures were kept. */
export function compareFigures(
  before: Figures,
  after: Figures,
  reasons: readonly Reason[],
  allowed: Thresholds,
): Outcome {
  if (reasons.some(({ kind }) => SHAPE.includes(kind))) return { verdict: 'changed', reasons, remarks: [] };
  if (before.pixels === after.pixels) {
    return { verdict: reasons.length > 0 ? 'changed' : 'same', reasons, remarks: [] };
  }
  const apart = distance(before.fingerprints, after.fingerprints);
  const all = [
    ...reasons,
    ...(apart.means > allowed.means
      ? describeReason('pixels', `mean colour of a part ${apart.means} of 255 off, at most ${allowed.means}`)
      : []),
    ...(apart.sharpness > allowed.sharpness
      ? describeReason(
          'pixels',
          `sharpness of a part ${percent(apart.sharpness)} off, at most ${percent(allowed.sharpness)}`,
        )
      : []),
  ];
  return { verdict: all.length > 0 ? 'changed' : 'alike', reasons: all, remarks: [], distance: apart };
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
