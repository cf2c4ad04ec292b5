import type { Difference } from './image/difference.ts';
import type { Distance } from './image/fingerprint.ts';
import type { Row } from './recording.ts';

/** What became of one image in one case, from the one recording to the other. */

export interface Finding {
  readonly image: string;
  readonly case: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
  readonly verdict: Verdict;
  /** Why it counts as a change. */
  readonly reasons: readonly Reason[];
  /** What is worth a word, and no change. */
  readonly remarks: readonly string[];
  /** Of the frame or page that differs most, counted from 0. */
  readonly difference?: (Difference & { readonly frame: number }) | undefined;
  /** Where the baseline has figures instead of pictures. */
  readonly distance?: Distance | undefined;
}

export interface Reason {
  readonly kind: ReasonKind;
  readonly text: string;
}

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

export type Verdict = 'broken' | 'changed' | 'mended' | 'unmatched' | 'alike' | 'same' | 'identical';

/** Worst first. What `fails` ends the run with 1. */
export const VERDICTS: Readonly<Record<Verdict, { readonly fails: boolean; readonly means: string }>> = {
  broken: { fails: true, means: 'worked before, and fails now or cannot be read' },
  changed: { fails: true, means: 'differs by more than a threshold' },
  mended: { fails: true, means: 'failed before, and works now' },
  unmatched: { fails: true, means: 'is not in both, or was made from another image' },
  alike: { fails: false, means: 'other pixels, within the thresholds' },
  same: { fails: false, means: 'other bytes, the same pixels' },
  identical: { fails: false, means: 'the same bytes, or the same error' },
};

export const VERDICT_NAMES = Object.keys(VERDICTS) as Verdict[];

export const isFailure = ({ verdict }: Pick<Finding, 'verdict'>): boolean => VERDICTS[verdict].fails;

/** Worst first: by verdict, then what is another picture altogether, then by how far the pixels are apart. */
export function bySeverity(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) =>
      VERDICT_NAMES.indexOf(a.verdict) - VERDICT_NAMES.indexOf(b.verdict) ||
      severity(b) - severity(a) ||
      (a.image < b.image ? -1 : Number(a.image > b.image)),
  );
}

/** Kinds of change that need no measure. */
const MAX_SEVERITY: readonly ReasonKind[] = ['error', 'size', 'frames', 'timing', 'alpha', 'profile'];
const MAX_DB = 200;

function severity({ reasons, difference, distance }: Finding): number {
  if (reasons.some(({ kind }) => MAX_SEVERITY.includes(kind))) return 2 * MAX_DB;
  if (difference) return MAX_DB - Math.min(difference.psnr, MAX_DB);
  return distance ? distance.means + 100 * distance.sharpness : 0;
}

/** What a comparison finds out. */
export type Outcome = Pick<Finding, 'verdict' | 'reasons' | 'remarks' | 'difference' | 'distance'>;

export const describeReason = (kind: ReasonKind, text: string): Reason[] => [{ kind, text }];
