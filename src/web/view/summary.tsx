import { plural } from '../../base/text.ts';
import { NOTES } from '../../tables/notes.ts';
import { keepOriginals, larger } from '../actions/keep-original.ts';
import { items } from '../state/items.ts';
import { keptKinds, removedKinds } from '../state/removed.ts';
import { failures, isGroupOpen, isGroupOpened, sharedNotes } from '../state/rows.ts';
import { Icon } from './elements.tsx';
import { LOSS, NOTE, Remark } from './file-marks.tsx';

/** What concerns many rows, above them: the group of failed ones, and the notes, each once. */
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
        <Remark {...LOSS}>
          {plural(largerCount, 'result')} are larger than their originals.{' '}
          <button type="button" class="link" onClick={() => keepOriginals(larger.value)}>
            Keep the originals
          </button>
        </Remark>
      )}
      {kept.files > 0 && (
        <Remark {...LOSS}>
          {kept.kinds} kept in {plural(kept.files, 'photo')}.
        </Remark>
      )}
      {removed.files > 0 && (
        <Remark {...NOTE}>
          {removed.kinds} removed from {plural(removed.files, 'photo')}.
        </Remark>
      )}
      {sharedNotes.value.map(([note, number]) => (
        <Remark key={note} {...(NOTES[note].loss ? LOSS : NOTE)}>
          {NOTES[note].page} {plural(number, 'file')}.
        </Remark>
      ))}
    </div>
  );
}
