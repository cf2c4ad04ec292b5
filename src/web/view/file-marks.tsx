import type { ComponentChildren } from 'preact';
import { NOTES } from '../../tables/notes.ts';
import { type OptionName, optionRow } from '../../tables/options.ts';
import { combined, combines } from '../state/combination.ts';
import { type Item, isStale, stateOf } from '../state/items.ts';
import { Icon, type IconName } from './elements.tsx';

interface RemarkProps extends Omit<MarkOfRow, 'text'> {
  children: ComponentChildren;
}

interface MarkOfRow {
  readonly look: 'loss' | 'note' | 'stale' | 'own';
  readonly icon: IconName;
  readonly text: string;
}

/** Looks of notes. */
export const LOSS = { look: 'loss', icon: 'warning' } as const;
export const NOTE = { look: 'note', icon: 'note' } as const;

/** Returns what to know about a file besides its result and format: notes and options. */
export function marksOf(item: Item): readonly MarkOfRow[] {
  const state = stateOf(item);
  const result = state.at === 'done' ? state.result : undefined;
  const notes = combines.value ? (combined.value?.fileNotes.get(item) ?? []) : (result?.notes ?? []);
  const own = Object.keys(item.own.value).filter((name) => name !== 'format');
  const labels = own.map((name) => optionRow(name as OptionName).control?.label);
  const marks: MarkOfRow[] = notes.map((note) => ({
    ...(NOTES[note].loss ? LOSS : NOTE),
    text: NOTES[note].page,
  }));
  if (result?.removed.includes('place')) marks.push({ ...NOTE, text: 'Place removed' });
  if (result?.kept.includes('place')) marks.push({ ...LOSS, text: 'The place stays in the result.' });
  if (result && !combines.value && isStale(item))
    marks.unshift({ look: 'stale', icon: 'again', text: 'Converted with other options.' });
  if (own.length > 0) marks.push({ look: 'own', icon: 'crop', text: `Own options: ${labels.join(', ')}` });
  return marks;
}

/** A line about files, after an icon. */
export const Remark = ({ look, icon, children }: RemarkProps) => (
  <p class={`file-state ${look}`}>
    <Icon name={icon} /> {children}
  </p>
);

/** What to know about a file, as an icon. The menu of the row has the text. */
export const Mark = ({ look, icon, text }: MarkOfRow) => (
  <span class={`file-state ${look}`} title={text}>
    <Icon name={icon} />
    <span class="visually-hidden">{text}</span>
  </span>
);
