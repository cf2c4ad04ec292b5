// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { useSignal } from '@preact/signals';
import { convert, isArchive } from '../actions/convert-files.ts';
import { canShare, share } from '../actions/share.ts';
import { combines } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import {
  announcement,
  type Item,
  isStale,
  knownSize,
  type Result,
  remove,
  saved,
  stateOf,
} from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';
import { choicesOf, FORMATS, formatLabel, type PageFormat, SMALLEST } from '../state/options.ts';
import { grabbed } from '../state/order.ts';
import { menu } from '../state/rows.ts';
import { TURNS, type Turn, turn } from '../state/turns.ts';
import { focusPicker } from './drop-zone.tsx';
import { Button, Entries, Icon, type IconName } from './elements.tsx';
import { ignoreDoubleClick } from './events.ts';
import { checkOptions } from './options-form.tsx';
import { MoveButtons } from './order.tsx';

/** The button for what a file needs next, and the one that opens its menu. */
export function Actions({ item }: { item: Item }) {
  const { file } = item;
  if (grabbed.value?.item === item)
    return (
      <div class="file-actions" role="gridcell">
        <MoveButtons item={item} />
      </div>
    );
  return (
    <div class="file-actions" role="gridcell">
      <StateAction item={item} />
      {stateOf(item).at === 'failed' ? (
        <RemoveButton item={item} />
      ) : (
        <Button
          look="bare"
          icon="more"
          aria-label={`More for ${file.name}`}
          aria-haspopup="dialog"
          title="More"
          tabIndex={-1}
          onClick={({ currentTarget }) => {
            menu.value = { item, anchor: currentTarget };
          }}
        />
      )}
    </div>
  );
}

/** Starts, repeats or cancels the conversion of a file, or saves its result. */
function StateAction({ item }: { item: Item }) {
  const { file } = item;
  const state = stateOf(item);
  const start = () => convertItem(item);
  if (combines.value) return null;
  switch (state.at) {
    case 'ready':
      return <Action label="Convert" of={file} onClick={start} />;
    case 'failed':
      return state.canRetry ? <Action label="Try again" icon="again" of={file} onClick={start} /> : null;
    case 'done':
      return <SaveLink name={saveNameOf(item, state.result)} result={state.result} isListed />;
    default:
      return <Action label="Cancel" of={file} onClick={state.cancel} />;
  }
}

/**
 * The controls that appear while the pointer or the focus is in a row: its format, its rotation,
 * and what repeats its conversion or removes it. A button replaces them by those that rotate and
 * flip it, until the focus leaves them.
 */
export function Tools({ item }: { item: Item }) {
  const isTurning = useSignal(false);
  const canTurn = ['ready', 'done'].includes(stateOf(item).at);
  const turns = isTurning.value && canTurn;
  return (
    <div
      class="file-tools"
      role="gridcell"
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) isTurning.value = false;
      }}
    >
      {turns ? <TurnButtons item={item} tabIndex={-1} /> : !combines.value && <FormatField item={item} />}
      {canTurn && (
        <Button
          look="plain square"
          icon={turns ? 'back' : 'right'}
          aria-label={`Rotate or flip ${item.file.name}`}
          aria-pressed={turns}
          title={turns ? 'Back' : 'Rotate or flip'}
          tabIndex={-1}
          onClick={() => {
            isTurning.value = !turns;
          }}
        />
      )}
      {!turns && canRepeat(item) && (
        <Button
          look="plain square"
          icon="again"
          aria-label={`Convert ${item.file.name} again`}
          title="Convert again"
          tabIndex={-1}
          onClick={() => convertItem(item)}
        />
      )}
      {!turns && <RemoveButton item={item} />}
    </div>
  );
}

/** Returns whether the comparison can show a file. */
export function isComparable(item: Item): boolean {
  const state = stateOf(item);
  if (combines.value) return state.at !== 'failed';
  if (state.at !== 'done') return state.at === 'ready';
  const { blob, isOriginal, preview } = state.result;
  return !isArchive(blob) && !(isOriginal && preview.value === null);
}

/** Returns whether a file has a result of other options, or is its own result. */
export const canRepeat = (item: Item): boolean => {
  const state = item.state.value;
  return state.at === 'done' && !combines.value && (isStale(item) || state.result.isOriginal === true);
};

/** Converts a file with the current options, if they are valid. */
export const convertItem = (item: Item): void => {
  if (checkOptions()) convert([item]);
};

/** Removes a file. Beside the reason why it has failed, its button has a text. */
function RemoveButton({ item }: { item: Item }) {
  const state = stateOf(item);
  const isFinal = state.at === 'failed' && !state.canRetry;
  return (
    <Button
      look={isFinal ? 'plain' : 'bare'}
      icon={isFinal ? undefined : 'remove'}
      aria-label={`Remove ${item.file.name}`}
      title={isFinal ? undefined : 'Remove'}
      tabIndex={-1}
      onClick={({ currentTarget }) => removeRow(currentTarget, item)}
    >
      {isFinal && 'Remove'}
    </Button>
  );
}

/** Removes a row. The focus moves to the same element of a neighbour, or to the file picker. */
export function removeRow(control: Element, item: Item): void {
  const row = control.closest('.file');
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  const isOnRemove = control.matches('[aria-label^="Remove "]');
  const target = isOnRemove ? neighbour?.querySelector('[aria-label^="Remove "]') : neighbour;
  if (target?.checkVisibility()) (target as HTMLElement).focus();
  else if (neighbour) (neighbour as HTMLElement).focus();
  else focusPicker();
  remove([item]);
}

/** The formats of a list of choices. */
export const formatEntries = () =>
  [SMALLEST, ...(formats.value?.output ?? [])].map(
    (type) => [type, FORMATS[type as PageFormat].label] as const,
  );

/** Selects the format of a single file. By default, it is the one of all files. */
export function FormatField({ item: { file, own }, tabIndex = -1 }: { item: Item; tabIndex?: number }) {
  const { set, unset } = choicesOf(own);
  return (
    <select
      aria-label={`Format of ${file.name}`}
      tabIndex={tabIndex}
      value={own.value.format ?? ''}
      onChange={({ currentTarget: { value } }) => {
        if (value) set({ format: value as PageFormat });
        else unset('format');
      }}
    >
      <option value="">→ {formatLabel}</option>
      <Entries of={formatEntries()} />
    </select>
  );
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
    onClick={() => saved.add(result)}
  >
    <Icon name="save" />
    Save
  </a>
);

/** A button that opens the share sheet of the system, if that takes these results. */
export const ShareButton = ({ label, results }: { label: string; results: Parameters<typeof share>[0] }) =>
  canShare(results) && (
    <Button look="plain square" icon="share" aria-label={label} onClick={() => share(results)} />
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

/** Buttons that rotate and flip a picture. `tabIndex` is -1 in the list, which has arrow keys. */
export const TurnButtons = ({ item, tabIndex = 0 }: { item: Item; tabIndex?: number }) =>
  Object.entries(TURNS).map(([by, label]) => (
    <Button
      key={by}
      look="plain square"
      icon={by as Turn}
      aria-label={`${label} ${item.file.name}`}
      title={label}
      tabIndex={tabIndex}
      onClick={() => turnItem(item, by as Turn)}
    />
  ));

/** Rotates or flips one picture. */
export function turnItem(item: Item, by: Turn): void {
  const choices = choicesOf(item.own);
  turn(choices, by, knownSize(item));
  const { rotate, flip } = choices.all();
  announcement.value = `${item.file.name}: rotation ${rotate}°, flip ${flip || 'none'}.`;
}
