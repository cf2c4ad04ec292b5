/** @module Compares two recordings row by row. */
import { compareFingerprints, comparePixels, metadataReasons } from './compare-images.ts';
import { decode } from './image/codec.ts';
import type { DecodedImage } from './image/image.ts';
import type { TestMatrix } from './matrix.ts';
import {
  AlteredResultError,
  fingerprintResult,
  type Recording,
  type Result,
  type ResultFingerprint,
  type Row,
  rowKey,
} from './record.ts';
import type { Thresholds } from './thresholds.ts';
import { type Comparison, comparisonWith, type Finding, isFailure } from './verdict.ts';

/** @param progress called after each row, with the name of its image and the number of all rows */
export async function compare(
  before: Recording,
  after: Recording,
  { thresholds }: TestMatrix,
  progress: (image: string, all: number) => void = () => {},
): Promise<Finding[]> {
  const previous = new Map(before.rows.map((row) => [rowKey(row), row]));
  const current = new Map(after.rows.map((row) => [rowKey(row), row]));
  const keys = [...new Set([...previous.keys(), ...current.keys()])];
  const findings: Finding[] = [];
  for (const key of keys) {
    const [one, other] = [previous.get(key), current.get(key)];
    const { image, case: name } = (one ?? other) as Row;
    const allowed = thresholds(image, name);
    if (!allowed) continue;
    // Compare sequentially: decoded images are large.
    const outcome = one && other ? await compareRows(one, other, { before, after, allowed }) : unmatched(one);
    findings.push({ image, case: name, before: one, after: other, ...outcome });
    progress(image, keys.length);
  }
  return findings;
}

interface CompareContext {
  readonly before: Recording;
  readonly after: Recording;
  readonly allowed: Thresholds;
}

function unmatched(before: Row | undefined): Comparison {
  const text = before ? 'only in the baseline' : 'not in the baseline: record a new one';
  return comparisonWith('unmatched', 'set', text);
}

async function compareRows(before: Row, after: Row, context: CompareContext): Promise<Comparison> {
  const difference = await whyUnmatched(before, after, context);
  if (difference !== undefined)
    return comparisonWith('unmatched', 'set', `${difference}: record a new baseline`);
  if (!before.result || !after.result) return compareErrors(before, after);
  const fileChanges = compareMetadata(before.result, after.result, context.allowed);
  const sameBytes = before.result.digest !== undefined && before.result.digest === after.result.digest;
  const outcome: Comparison = sameBytes
    ? { verdict: 'identical', reasons: [], remarks: [] }
    : await compareResults(before, after, context);
  const reasons = [...outcome.reasons, ...fileChanges.reasons];
  return {
    ...outcome,
    verdict: reasons.length > 0 && !isFailure(outcome) ? 'changed' : outcome.verdict,
    reasons,
    remarks: [...outcome.remarks, ...fileChanges.remarks],
  };
}

/** Returns why two rows cannot be compared; undefined if they can. */
async function whyUnmatched(before: Row, after: Row, context: CompareContext): Promise<string | undefined> {
  if (before.input !== after.input) return 'the input image is different';
  if (before.format !== after.format) return 'the case has a different format';
  try {
    // Also if the digests are the same: a file of the baseline can be another one by now.
    await context.before.open(before);
    await context.after.open(after);
  } catch (error) {
    if (error instanceof AlteredResultError) return error.message;
    throw error;
  }
  return undefined;
}

function compareErrors({ refused: before }: Row, { refused: after }: Row): Comparison {
  const text = `${formatStatus(before)} → ${formatStatus(after)}`;
  if (!before) return comparisonWith('broken', 'error', text);
  if (!after) return comparisonWith('fixed', 'error', text);
  if (before.status !== after.status) return comparisonWith('changed', 'error', text);
  const remarks = before.message === after.message ? [] : [`different message: ${text}`];
  return { verdict: 'identical', reasons: [], remarks };
}

const formatStatus = (refused: Row['refused']): string =>
  refused ? `${refused.status} ${refused.message}` : 'worked';

/** A conversion that takes more than both limits, as a factor and in ms, gets a remark. */
const SLOW_REMARK = { times: 2, ms: 100 };

/** Compares properties that are not visible in the image: file size, conversion time and notes. */
function compareMetadata(
  before: Result,
  after: Result,
  allowed: Thresholds,
): Pick<Comparison, 'reasons' | 'remarks'> {
  const growth = after.bytes - before.bytes;
  const share = growth / Math.max(1, before.bytes);
  const resized = Math.abs(share) > allowed.bytes && Math.abs(growth) > allowed.bytesFloor;
  const [previousMs, currentMs] = [before.ms, after.ms];
  const times = previousMs && currentMs ? currentMs / previousMs : 1;
  const late = allowed.time !== undefined && times > allowed.time;
  const slow = !late && times > SLOW_REMARK.times && (currentMs ?? 0) - (previousMs ?? 0) > SLOW_REMARK.ms;
  const took = `took ${currentMs} ms instead of ${previousMs}`;
  const sizes = `${before.bytes} → ${after.bytes}`;
  const [one, other] = [before.notes, after.notes].map((list) => list.join(', ') || 'none');
  const percent = `${share > 0 ? '+' : ''}${(share * 100).toFixed(0)}%`;
  return {
    reasons: [
      ...(resized ? [{ kind: 'bytes', text: `${sizes} bytes (${percent})` } as const] : []),
      ...(late ? [{ kind: 'time', text: took } as const] : []),
    ],
    remarks: [...(slow ? [took] : []), ...(one === other ? [] : [`notes: ${one} → ${other}`])],
  };
}

async function compareResults(before: Row, after: Row, context: CompareContext): Promise<Comparison> {
  const loading = [loadResult(before, context.before), loadResult(after, context.after)] as const;
  const [one, other] = await Promise.all(loading);
  if (!one && !other)
    return comparisonWith('changed', 'error', 'different bytes; no independent decoder reads either file');
  if (!other) return comparisonWith('broken', 'error', 'cannot be read by an independent decoder');
  if (!one) return comparisonWith('fixed', 'error', 'can be read by an independent decoder now');
  const reasons = metadataReasons(one.facts, other.facts);
  if ('frames' in one && 'frames' in other) return comparePixels(one, other, reasons, context.allowed);
  return compareFingerprints(toFingerprints(one), toFingerprints(other), reasons, context.allowed);
}

type LoadedResult = DecodedImage | ResultFingerprint;

const toFingerprints = (result: LoadedResult): ResultFingerprint =>
  'frames' in result ? fingerprintResult(result) : result;

/** Decodes the file, or returns the fingerprints if it was not kept; undefined if unreadable. */
async function loadResult(row: Row, recording: Recording): Promise<LoadedResult | undefined> {
  const file = recording.open(row);
  return file ? decode(await file, row.format).catch(() => undefined) : row.result?.figures;
}
