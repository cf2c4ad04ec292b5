// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { useSignal } from '@preact/signals';
import { convert, isArchive } from '../actions/convert-files.ts';
import { combines } from '../state/combination.ts';
import {
  announcement,
  compared,
  type Item,
  knownSize,
  markSaved,
  type Result,
  stateOf,
} from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';
import { choicesOf } from '../state/options.ts';
import { grabbed } from '../state/order.ts';
import { TURNS, type Turn, turn } from '../state/turns.ts';
import { Button, Icon, type IconName } from './elements.tsx';
import { ignoreDoubleClick } from './events.ts';
import { checkOptions } from './options-form.tsx';
import { MoveButtons } from './order.tsx';

/** The buttons of a file. One of them replaces the others by those that rotate and flip it, until the focus leaves them. */
export function Actions({ item }: { item: Item }) {
  const isTurning = useSignal(false);
  const canTurn = ['ready', 'done'].includes(stateOf(item).at);
  if (grabbed.value?.item === item)
    return (
      <div class="file-actions" role="gridcell">
        <MoveButtons item={item} />
      </div>
    );
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
        <Button
          look="plain square"
          icon={isTurning.value ? 'back' : 'turns'}
          aria-label={`Rotate or flip ${item.file.name}`}
          aria-pressed={isTurning.value}
          title={isTurning.value ? 'Back' : 'Rotate or flip'}
          tabIndex={-1}
          onClick={() => {
            isTurning.value = !isTurning.value;
          }}
        />
      )}
    </div>
  );
}

/** Buttons for the actions that a file's state allows. */
function StateActions({ item }: { item: Item }) {
  const { file } = item;
  const state = stateOf(item);
  if (combines.value) return state.at === 'failed' ? null : <CompareAction item={item} />;
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
          <SaveLink name={saveNameOf(item, state.result)} result={state.result} isListed />
        </>
      );
    default:
      return <Action label="Cancel" of={file} onClick={state.cancel} />;
  }
}

interface SaveLinkProps {
  /** File name for saving. */
  name: string;
  result: Result;
  /** Whether it is in the list, where arrow keys reach it. */
  isListed?: boolean;
}

/** Link that saves a result. */
export const SaveLink = ({ name, result, isListed = false }: SaveLinkProps) => (
  <a
    class={isListed ? 'button plain' : 'button'}
    href={result.url}
    download={name}
    aria-label={isListed ? `Save ${name}` : undefined}
    tabIndex={isListed ? -1 : undefined}
    onClick={() => markSaved(result)}
  >
    <Icon name="save" />
    Save
  </a>
);

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
  icon?: IconName;
  of: File;
  onClick: () => void;
}

/** A button that names its file for screen readers. */
const Action = ({ label, icon, of, onClick }: ActionProps) => (
  <Button icon={icon} aria-label={`${label} ${of.name}`} tabIndex={-1} onClick={ignoreDoubleClick(onClick)}>
    {label}
  </Button>
);

/** Buttons that rotate and flip one picture. `tabIndex` is -1 in the list, where arrow keys reach them. */
export const TurnButtons = ({ item, tabIndex = 0 }: { item: Item; tabIndex?: number }) =>
  Object.entries(TURNS).map(([by, label]) => (
    <Button
      key={by}
      look="plain square"
      icon={by as Turn}
      aria-label={`${label} ${item.file.name}`}
      title={label}
      tabIndex={tabIndex}
      onClick={() => {
        const choices = choicesOf(item.own);
        turn(choices, by as Turn, knownSize(item));
        const { rotate, flip } = choices.all();
        announcement.value = `${item.file.name}: rotation ${rotate}°, flip ${flip || 'none'}.`;
      }}
    />
  ));
