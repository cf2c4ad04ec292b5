import { compareFigures, comparePixels, factReasons } from './compare-images.ts';
import { decode } from './image/codec.ts';
import type { DecodedImage, ImageMetadata } from './image/image.ts';
import { figuresOf } from './record.ts';
import { type Figures, keyOf, type Recording, type Result, type Row } from './recording.ts';
import type { Thresholds } from './thresholds.ts';
import { describeReason, type Finding, isFailure, type Outcome } from './verdict.ts';

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
    const outcome = one && other ? await compareRows(one, other, { before, after, allowed }) : unmatched(one);
    findings.push({ image, case: name, before: one, after: other, ...outcome });
    progress(done + 1, keys.length);
  }
  return findings;
}

interface Sides {
  readonly before: Recording;
  readonly after: Recording;
  readonly allowed: Thresholds;
}

function unmatched(before: Row | undefined): Outcome {
  const text = before ? 'is in the baseline alone' : 'is not in the baseline: record it anew';
  return { verdict: 'unmatched', reasons: describeReason('set', text), remarks: [] };
}

async function compareRows(before: Row, after: Row, sides: Sides): Promise<Outcome> {
  if (before.input !== after.input || before.format !== after.format) {
    const what =
      before.input === after.input ? 'the case has another format' : 'the image itself is another one';
    return { verdict: 'unmatched', reasons: describeReason('set', `${what}: record it anew`), remarks: [] };
  }
  if (!before.result || !after.result) return compareErrors(before, after);
  const beside = compareMetadata(before.result, after.result, sides.allowed);
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
  if (!before) return { verdict: 'broken', reasons: describeReason('error', text), remarks: [] };
  if (!after) return { verdict: 'mended', reasons: describeReason('error', text), remarks: [] };
  if (before.status !== after.status) {
    return { verdict: 'changed', reasons: describeReason('error', text), remarks: [] };
  }
  const remarks = before.message === after.message ? [] : [`another message: ${text}`];
  return { verdict: 'identical', reasons: [], remarks };
}

const sentence = (refused: Row['refused']): string =>
  refused ? `${refused.status} ${refused.message}` : 'worked';

/** Slower than this, in times and in milliseconds, is worth a word. */
const SLOW = { times: 2, ms: 100 };

/** What does not show in the picture: its size in bytes, the time that it took, what was told of it. */
function compareMetadata(
  before: Result,
  after: Result,
  allowed: Thresholds,
): Pick<Outcome, 'reasons' | 'remarks'> {
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
      ...(resized ? describeReason('bytes', `${before.bytes} → ${after.bytes} bytes (${percent})`) : []),
      ...(late ? describeReason('time', took) : []),
    ],
    remarks: [
      ...(slow ? [took] : []),
      ...(notes[0] === notes[1] ? [] : [`notes: ${notes[0]} → ${notes[1]}`]),
    ],
  };
}

async function comparePictures(before: Row, after: Row, sides: Sides): Promise<Outcome> {
  const [one, other] = await Promise.all([loadResult(before, sides.before), loadResult(after, sides.after)]);
  if (!one && !other)
    return {
      verdict: 'changed',
      reasons: describeReason('error', 'other bytes, which no independent decoder reads, now as before'),
      remarks: [],
    };
  if (!other)
    return {
      verdict: 'broken',
      reasons: describeReason('error', 'cannot be read by an independent decoder'),
      remarks: [],
    };
  if (!one)
    return {
      verdict: 'mended',
      reasons: describeReason('error', 'could not be read before, and can now'),
      remarks: [],
    };
  const reasons = factReasons(one.facts, other.facts);
  if (one.picture && other.picture) return comparePixels(one.picture, other.picture, reasons, sides.allowed);
  return compareFigures(inFigures(one), inFigures(other), reasons, sides.allowed);
}

/** A result, by its file or by its figures. */
type LoadedResult = { readonly facts: ImageMetadata } & (
  | { readonly picture: DecodedImage; readonly figures?: never }
  | { readonly figures: Figures; readonly picture?: never }
);

const inFigures = ({ figures, picture }: LoadedResult): Figures => figures ?? figuresOf(picture);

/** A result by its file, or by its figures where that was not kept; nothing when no decoder reads it. */
async function loadResult(row: Row, recording: Recording): Promise<LoadedResult | undefined> {
  const file = recording.open(row);
  const figures = row.result?.figures;
  if (!file) return figures && { facts: figures.facts, figures };
  const picture = await decode(await file, row.format).catch(() => undefined);
  return picture && { facts: picture.facts, picture };
}
