import { plural } from '../../base/text.ts';
import { NOTES } from '../../tables/notes.ts';
import { keepOriginals, larger } from '../actions/keep-original.ts';
import { items } from '../state/items.ts';
import { keptKinds, removedKinds } from '../state/removed.ts';
import { failures, isGroupOpen, isGroupOpened, sharedNotes } from '../state/rows.ts';
import { Icon } from './elements.tsx';

/**
 * What concerns many rows, above them: the group of those that have failed, and the notes, each
 * once.
 */
export function Summary() {
  const count = failures.value.length;
  const [removed, kept] = [removedKinds.value, keptKinds.value];
  const largerCount = larger.value.length;
  if (count + sharedNotes.value.length + removed.files + kept.files + largerCount === 0) return null;
  return (
    <div class="summary">
      {count > 0 && (
        <button
          type="button"
          class="link error failures"
          aria-expanded={isGroupOpen.value}
          disabled={count === items.value.length}
          onClick={() => {
            isGroupOpened.value = !isGroupOpened.value;
          }}
        >
          <Icon name="expand" /> {count} not converted
        </button>
      )}
      {largerCount > 1 && (
        <p class="file-state loss">
          <Icon name="warning" /> {plural(largerCount, 'result')} are larger than their originals.{' '}
          <button type="button" class="link" onClick={() => keepOriginals(larger.value)}>
            Keep the originals
          </button>
        </p>
      )}
      {kept.files > 0 && (
        <p class="file-state loss">
          <Icon name="warning" /> {kept.kinds} kept in {plural(kept.files, 'photo')}.
        </p>
      )}
      {removed.files > 0 && (
        <p class="file-state note">
          <Icon name="note" /> {removed.kinds} removed from {plural(removed.files, 'photo')}.
        </p>
      )}
      {sharedNotes.value.map(([note, number]) => (
        <p key={note} class={NOTES[note].loss ? 'file-state loss' : 'file-state note'}>
          <Icon name={NOTES[note].loss ? 'warning' : 'note'} /> {NOTES[note].page} {plural(number, 'file')}.
        </p>
      ))}
    </div>
  );
}
