/** @module Verdicts on results, with their reasons and their order. */
import type { Difference } from './image/difference.ts';
import type { Distance } from './image/fingerprint.ts';
import type { Row } from './record.ts';

/** The comparison of one image in one case between two recordings. */
export interface Finding {
  readonly image: string;
  readonly case: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
  readonly verdict: Verdict;
  /** Why the result counts as a change; empty if it does not. */
  readonly reasons: readonly Reason[];
  /** Differences that are reported, but do not count as a change. */
  readonly remarks: readonly string[];
  /** Difference of the frame or page that differs most. `frame` counts from 0. */
  readonly difference?: (Difference & { readonly frame: number }) | undefined;
  /** Distance of the fingerprints, if the baseline holds fingerprints instead of result files. */
  readonly distance?: Distance | undefined;
}

export interface Reason {
  readonly kind: ReasonKind;
  readonly text: string;
}

/** What differs. Reports group and filter by it. */
export type ReasonKind =
  | 'error'
  | 'set'
  | 'size'
  | 'frames'
  | 'timing'
  | 'alpha'
  | 'profile'
  | 'metadata'
  | 'depth'
  | 'pixels'
  | 'bytes'
  | 'time';

/** All verdicts, worst first. `regress check` exits with status 1 if any has `fails`. */
export const VERDICTS = {
  broken: { fails: true, description: 'worked before; now fails or cannot be decoded' },
  changed: { fails: true, description: 'exceeds a threshold' },
  fixed: { fails: true, description: 'failed before; works now' },
  unmatched: {
    fails: true,
    description: 'missing on one side, altered in the baseline, or from a different input image',
  },
  similar: { fails: false, description: 'different pixels, within the thresholds' },
  same: { fails: false, description: 'different bytes, same pixels' },
  identical: { fails: false, description: 'same bytes, or same error' },
} as const;

export type Verdict = keyof typeof VERDICTS;

export const VERDICT_NAMES = Object.keys(VERDICTS) as Verdict[];

/** Returns whether the finding makes the run exit with status 1. */
export const isFailure = ({ verdict }: Pick<Finding, 'verdict'>): boolean => VERDICTS[verdict].fails;

/** Sorts findings, worst first: by verdict, then shape before pixels, then by distance. */
export function bySeverity(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) =>
      VERDICT_NAMES.indexOf(a.verdict) - VERDICT_NAMES.indexOf(b.verdict) ||
      severity(b) - severity(a) ||
      (a.image < b.image ? -1 : Number(a.image > b.image)),
  );
}

/** Kinds of change that rank before every change of pixels. */
const MAX_SEVERITY: readonly ReasonKind[] = ['error', 'size', 'frames', 'timing', 'alpha', 'profile'];
/** Upper bound of a PSNR in the ranking, in dB. */
const MAX_DB = 200;

function severity({ reasons, difference, distance }: Finding): number {
  if (reasons.some(({ kind }) => MAX_SEVERITY.includes(kind))) return 2 * MAX_DB;
  if (difference) return MAX_DB - Math.min(difference.psnr, MAX_DB);
  return distance ? distance.means + 100 * distance.sharpness : 0;
}

/** Result of comparing two rows: a {@link Finding} without the rows. */
export type Comparison = Pick<Finding, 'verdict' | 'reasons' | 'remarks' | 'difference' | 'distance'>;

/** Creates an outcome with one reason. */
export const comparisonWith = (verdict: Verdict, kind: ReasonKind, text: string): Comparison => ({
  verdict,
  reasons: [{ kind, text }],
  remarks: [],
});
