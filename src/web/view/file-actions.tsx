// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { useSignal } from '@preact/signals';
import { convert, isArchive } from '../actions/convert.ts';
import { compared, type Item, markSaved, stateOf } from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';
import { ignoreDoubleClick } from './events.ts';
import { Icon } from './icons.tsx';
import { checkOptions } from './options-form.tsx';
import { TurnButtons } from './turns.tsx';

/** The buttons of a file. One of them replaces the others by those that rotate and flip it, until the focus leaves them. */
export function Actions({ item }: { item: Item }) {
  const isTurning = useSignal(false);
  const canTurn = ['ready', 'done'].includes(stateOf(item).at);
  const label = `Rotate or flip ${item.file.name}`;
  return (
    <div
      class={isTurning.value ? 'file-actions turns' : 'file-actions'}
      role="gridcell"
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) isTurning.value = false;
      }}
    >
      {isTurning.value && canTurn ? <TurnButtons item={item} tabIndex={-1} /> : <StateActions item={item} />}
      {canTurn && (
        <button
          type="button"
          class="button plain square"
          aria-label={label}
          aria-pressed={isTurning.value}
          title={isTurning.value ? 'Back' : 'Rotate or flip'}
          tabIndex={-1}
          onClick={() => {
            isTurning.value = !isTurning.value;
          }}
        >
          <Icon name={isTurning.value ? 'back' : 'turns'} />
        </button>
      )}
    </div>
  );
}

/** Buttons for the actions that a file's state allows. */
function StateActions({ item }: { item: Item }) {
  const { file } = item;
  const state = stateOf(item);
  switch (state.at) {
    case 'ready':
      return (
        <>
          <CompareAction item={item} />
          <Action label="Convert" of={file} onClick={() => checkOptions() && convert([item])} />
        </>
      );
    case 'failed':
      return state.canRetry ? (
        <Action label="Try again" icon="right" of={file} onClick={() => checkOptions() && convert([item])} />
      ) : null;
    case 'done':
      return (
        <>
          {!isArchive(state.result.blob) && <CompareAction item={item} />}
          <a
            class="button plain"
            href={state.result.url}
            download={saveNameOf(item, state.result)}
            aria-label={`Save ${saveNameOf(item, state.result)}`}
            tabIndex={-1}
            onClick={() => markSaved(state.result)}
          >
            <Icon name="save" />
            Save
          </a>
        </>
      );
    default:
      return <Action label="Cancel" of={file} onClick={state.cancel} />;
  }
}

/** Opens the comparison, which converts the file if necessary. */
const CompareAction = ({ item }: { item: Item }) => (
  <Action
    label="Compare"
    icon="compare"
    of={item.file}
    onClick={() => {
      compared.value = item;
    }}
  />
);

interface ActionProps {
  label: string;
  icon?: 'right' | 'compare';
  of: File;
  onClick: () => void;
}

/** A button that names its file for screen readers. */
function Action({ label, icon, of, onClick }: ActionProps) {
  return (
    <button
      type="button"
      class="button plain"
      aria-label={`${label} ${of.name}`}
      tabIndex={-1}
      onClick={ignoreDoubleClick(onClick)}
    >
      {icon && <Icon name={icon} />}
      {label}
    </button>
  );
}
