import { decode } from './picture/codec.ts';
import { type Difference, difference } from './picture/difference.ts';
import { digestOf, distance } from './picture/fingerprint.ts';
import type { Facts, Picture } from './picture/picture.ts';
import { figuresOf } from './record.ts';
import { type Figures, keyOf, type Recording, type Result, type Row } from './recording.ts';
import type { Thresholds } from './thresholds.ts';
import { type Finding, isFailure, type Reason, type ReasonKind } from './verdict.ts';

/** Two recordings → what became of each image in each case. */

/**
 * @param before whose matrix says which thresholds count
 * @param progress is told how many are done
 */
export async function compare(
  before: Recording,
  after: Recording,
  { thresholds } = before.matrix,
  progress: (done: number, all: number) => void = () => {},
): Promise<Finding[]> {
  const old = new Map(before.rows.map((row) => [keyOf(row), row]));
  const fresh = new Map(after.rows.map((row) => [keyOf(row), row]));
  const keys = [...new Set([...old.keys(), ...fresh.keys()])];
  const findings: Finding[] = [];
  for (const [done, key] of keys.entries()) {
    const [one, other] = [old.get(key), fresh.get(key)];
    const { image, case: name } = (one ?? other) as Row;
    const allowed = thresholds(image, name);
    if (!allowed) continue;
    // One after the other: pictures are large.
    const outcome = one && other ? await compareRows(one, other, { before, after, allowed }) : lonely(one);
    findings.push({ image, case: name, before: one, after: other, ...outcome });
    progress(done + 1, keys.length);
  }
  return findings;
}

type Outcome = Pick<Finding, 'verdict' | 'reasons' | 'remarks' | 'difference' | 'distance'>;

interface Sides {
  readonly before: Recording;
  readonly after: Recording;
  readonly allowed: Thresholds;
}

const because = (kind: ReasonKind, text: string): Reason[] => [{ kind, text }];

function lonely(before: Row | undefined): Outcome {
  const text = before ? 'is in the baseline alone' : 'is not in the baseline: record it anew';
  return { verdict: 'unmatched', reasons: because('set', text), remarks: [] };
}

async function compareRows(before: Row, after: Row, sides: Sides): Promise<Outcome> {
  if (before.input !== after.input || before.format !== after.format) {
    const what =
      before.input === after.input ? 'the case has another format' : 'the image itself is another one';
    return { verdict: 'unmatched', reasons: because('set', `${what}: record it anew`), remarks: [] };
  }
  if (!before.result || !after.result) return compareErrors(before, after);
  const beside = besides(before.result, after.result, sides.allowed);
  const sameBytes = before.result.digest !== undefined && before.result.digest === after.result.digest;
  const seen: Outcome = sameBytes
    ? { verdict: 'identical', reasons: [], remarks: [] }
    : await comparePictures(before, after, sides);
  const reasons = [...seen.reasons, ...beside.reasons];
  return {
    ...seen,
    verdict: reasons.length > 0 && !isFailure(seen) ? 'changed' : seen.verdict,
    reasons,
    remarks: [...seen.remarks, ...beside.remarks],
  };
}

function compareErrors({ refused: before }: Row, { refused: after }: Row): Outcome {
  const text = `${sentence(before)} → ${sentence(after)}`;
  if (!before) return { verdict: 'broken', reasons: because('error', text), remarks: [] };
  if (!after) return { verdict: 'mended', reasons: because('error', text), remarks: [] };
  if (before.status !== after.status) {
    return { verdict: 'changed', reasons: because('error', text), remarks: [] };
  }
  const remarks = before.message === after.message ? [] : [`another message: ${text}`];
  return { verdict: 'identical', reasons: [], remarks };
}

const sentence = (refused: Row['refused']): string =>
  refused ? `${refused.status} ${refused.message}` : 'worked';

/** Slower than this, in times and in milliseconds, is worth a word. */
const SLOW = { times: 2, ms: 100 };

/** What does not show in the picture: its size in bytes, the time that it took, what was told of it. */
function besides(before: Result, after: Result, allowed: Thresholds): Pick<Outcome, 'reasons' | 'remarks'> {
  const grown = after.bytes - before.bytes;
  const share = grown / Math.max(1, before.bytes);
  const resized = Math.abs(share) > allowed.bytes && Math.abs(grown) > allowed.bytesFloor;
  const [old, fresh] = [before.ms, after.ms];
  const times = old && fresh ? fresh / old : 1;
  const late = allowed.time !== undefined && times > allowed.time;
  const slow = !late && times > SLOW.times && (fresh ?? 0) - (old ?? 0) > SLOW.ms;
  const took = `took ${fresh} ms instead of ${old}`;
  const notes = [before.notes, after.notes].map((list) => list.join(', ') || 'none');
  const percent = `${share > 0 ? '+' : ''}${(share * 100).toFixed(0)}%`;
  return {
    reasons: [
      ...(resized ? because('bytes', `${before.bytes} → ${after.bytes} bytes (${percent})`) : []),
      ...(late ? because('time', took) : []),
    ],
    remarks: [
      ...(slow ? [took] : []),
      ...(notes[0] === notes[1] ? [] : [`notes: ${notes[0]} → ${notes[1]}`]),
    ],
  };
}

async function comparePictures(before: Row, after: Row, sides: Sides): Promise<Outcome> {
  const [one, other] = await Promise.all([look(before, sides.before), look(after, sides.after)]);
  if (!one && !other)
    return {
      verdict: 'changed',
      reasons: because('error', 'other bytes, which no independent decoder reads, now as before'),
      remarks: [],
    };
  if (!other)
    return {
      verdict: 'broken',
      reasons: because('error', 'cannot be read by an independent decoder'),
      remarks: [],
    };
  if (!one)
    return {
      verdict: 'mended',
      reasons: because('error', 'could not be read before, and can now'),
      remarks: [],
    };
  const reasons = factReasons(one.facts, other.facts);
  if (one.picture && other.picture) return comparePixels(one.picture, other.picture, reasons, sides.allowed);
  return compareFigures(inFigures(one), inFigures(other), reasons, sides.allowed);
}

/** A result, by its file or by its figures. */
type Look = { readonly facts: Facts } & (
  | { readonly picture: Picture; readonly figures?: never }
  | { readonly figures: Figures; readonly picture?: never }
);

const inFigures = ({ figures, picture }: Look): Figures => figures ?? figuresOf(picture);

/** A result by its file, or by its figures where that was not kept; nothing when no decoder reads it. */
async function look(row: Row, recording: Recording): Promise<Look | undefined> {
  const file = recording.open(row);
  const figures = row.result?.figures;
  if (!file) return figures && { facts: figures.facts, figures };
  const picture = await decode(await file, row.format).catch(() => undefined);
  return picture && { facts: picture.facts, picture };
}

/** Every fact that is another one, in words. */
export function factReasons(before: Facts, after: Facts): Reason[] {
  return FACTS.flatMap(([kind, say]) => {
    const [one, other] = [say(before), say(after)];
    return one === other ? [] : because(kind, `${one} → ${other}`);
  });
}

const FACTS: readonly (readonly [ReasonKind, (facts: Facts) => string])[] = [
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
  before: Picture,
  after: Picture,
  reasons: readonly Reason[],
  allowed: Thresholds,
): Outcome {
  if (reasons.some(({ kind }) => SHAPE.includes(kind))) return { verdict: 'changed', reasons, remarks: [] };
  if (digestOf(before) === digestOf(after)) {
    return { verdict: reasons.length > 0 ? 'changed' : 'same', reasons, remarks: [] };
  }
  const worst = worstFrame(before, after, allowed);
  if (!worst) return { verdict: 'changed', reasons: because('size', 'a page has another size'), remarks: [] };
  const all = [...reasons, ...pixelReasons(worst, allowed)];
  return { verdict: all.length > 0 ? 'changed' : 'alike', reasons: all, remarks: [], difference: worst };
}

/** The frame or page that differs most: by more than is allowed, if any does; nothing when one has another size, as only pages can. */
function worstFrame(
  before: Picture,
  after: Picture,
  allowed: Thresholds,
): (Difference & { frame: number }) | undefined {
  const tooFar = (one: Difference) => Number(pixelReasons(one, allowed).length > 0);
  let worst: (Difference & { frame: number }) | undefined;
  for (const [frame, raster] of before.frames.entries()) {
    const other = after.frames[frame];
    if (other?.width !== raster.width || other.height !== raster.height) return undefined;
    const found = difference(raster, other);
    const further = worst ? tooFar(found) - tooFar(worst) || worst.psnr - found.psnr : 1;
    if (further > 0) worst = { ...found, frame };
  }
  return worst;
}

function pixelReasons({ psnr, ssim, patch }: Difference, allowed: Thresholds): Reason[] {
  return [
    ...(psnr < allowed.psnr ? because('pixels', `PSNR ${psnr.toFixed(1)} dB, at least ${allowed.psnr}`) : []),
    ...(ssim !== undefined && ssim < allowed.ssim
      ? because('pixels', `SSIM ${ssim.toFixed(4)}, at least ${allowed.ssim}`)
      : []),
    ...(patch > allowed.patch
      ? because('pixels', `in one place ${patch.toFixed(1)} of 255, at most ${allowed.patch}`)
      : []),
  ];
}

function compareFigures(
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
      ? because('pixels', `mean colour of a part ${apart.means} of 255 off, at most ${allowed.means}`)
      : []),
    ...(apart.sharpness > allowed.sharpness
      ? because(
          'pixels',
          `sharpness of a part ${percent(apart.sharpness)} off, at most ${percent(allowed.sharpness)}`,
        )
      : []),
  ];
  return { verdict: all.length > 0 ? 'changed' : 'alike', reasons: all, remarks: [], distance: apart };
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
