/** @module How results were reached, and the results of a file to choose from. */
import { LOOKS_THE_SAME } from '../format.ts';
import type { Candidate, Item, Result, State } from './items.ts';
import { AUTO, choicesOf, type Options, parseOptions, removeOwn, SMALLEST } from './options.ts';

/** Options in which candidates differ, by the names of their fields. */
const DIFFERENCES = { output_format: 'format', quality: 'quality', lossless: 'lossless' } as const;

/**
 * Records the result of a file. With other options than a format and its quality, the results
 * before are no candidates any more.
 */
export function finish(item: Item, query: string, result: Result): void {
  const { label, blob } = result;
  const others = item.candidates
    .peek()
    .filter((other) => other.label !== label && commonOf(other.query) === commonOf(query));
  const text = describeQuality(query, result) ?? label;
  item.candidates.value = [...others, { label, text, bytes: blob.size, query }];
  item.state.value = { at: 'done', query, result };
}

function commonOf(query: string): string {
  const common = new URLSearchParams(query);
  for (const field of Object.keys(DIFFERENCES)) common.delete(field);
  return common.toString();
}

/** Chooses the format and the quality of a candidate for its file. */
export function choose({ own }: Item, { query }: Candidate): void {
  const given = new URLSearchParams(query);
  const all = parseOptions(given);
  const chosen = Object.entries(DIFFERENCES).filter(([field]) => all.preset === '' || given.has(field));
  removeOwn(own, Object.values(DIFFERENCES));
  choicesOf(own).set(Object.fromEntries(chosen.map(([, name]) => [name, all[name]])) as Partial<Options>);
}

/** Returns how a result was reached, such as "WebP, quality 71"; undefined if options say it. */
export const describeOutcome = (state: State): string | undefined =>
  state.at === 'done' ? describeQuality(state.query, state.result) : undefined;

function describeQuality(query: string, { label, quality, notes }: Result): string | undefined {
  const fields = new URLSearchParams(query);
  const isSmallest = fields.get('output_format') === SMALLEST;
  if (quality === undefined) return isSmallest ? `${label}, the smallest format` : undefined;
  const isLowered = notes.some((note) => note === 'quality-lowered' || note === 'quality-reduced');
  const isSame = (isSmallest || fields.get('quality') === AUTO) && !isLowered;
  return `${label}, quality ${quality}${isSame ? `: ${LOOKS_THE_SAME}` : ''}`;
}
