import { announcement, type Item, knownSize } from '../state/items.ts';
import { choicesOf } from '../state/options.ts';
import { TURNS, type Turn, turn } from '../state/turns.ts';
import { Icon } from './icons.tsx';

/** Buttons that rotate and flip one picture. `tabIndex` is -1 in the list, where arrow keys reach them. */
export const TurnButtons = ({ item, tabIndex = 0 }: { item: Item; tabIndex?: number }) =>
  Object.entries(TURNS).map(([by, label]) => (
    <button
      key={by}
      type="button"
      class="button plain square"
      aria-label={`${label} ${item.file.name}`}
      title={label}
      tabIndex={tabIndex}
      onClick={() => {
        const choices = choicesOf(item.own);
        turn(choices, by as Turn, knownSize(item));
        const { rotate, flip } = choices.all();
        announcement.value = `${item.file.name}: rotation ${rotate}°, flip ${flip || 'none'}.`;
      }}
    >
      <Icon name={by as Turn} />
    </button>
  ));
