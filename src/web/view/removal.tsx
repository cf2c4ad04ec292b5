import { removal, undoRemoval } from '../state/items.ts';
import { ignoreDoubleClick } from './events.ts';

/** The last removal, with a button that undoes it. */
export function Removal() {
  if (!removal.value) return null;
  return (
    <p class="removal">
      {removal.value.message} ·{' '}
      <button type="button" class="link" onClick={ignoreDoubleClick(undoRemoval)}>
        Undo
      </button>
    </p>
  );
}
