/** @module Outcomes of conversions of damaged files, and their counts. */

/** Kinds of outcomes. `lost` is a rejected file whose image other decoders still show. */
const KINDS = ['converted', 'rejected', 'lost', 'failed'] as const;

/** Outcome of the conversion of a damaged file. */
export interface Outcome {
  readonly kind: (typeof KINDS)[number];
  /** What is wrong; undefined if nothing is. */
  readonly finding?: string;
  /** Whether the image was compared with that of the undamaged file. */
  readonly compared?: boolean;
}

/** Formats how many outcomes of each kind there are. */
export function formatCounts(outcomes: readonly Outcome[]): string {
  const counts = KINDS.map((kind) => `${kind} ${outcomes.filter((one) => one.kind === kind).length}`);
  const compared = outcomes.filter((one) => one.compared).length;
  return [...counts, `compared ${compared}`].join(', ');
}
