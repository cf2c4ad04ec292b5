import { useLayoutEffect, useRef } from 'preact/hooks';
import { isLarger, keepOriginals } from '../actions/keep-original.ts';
import { canShare, share } from '../actions/share.ts';
import { describeOutcome } from '../state/candidates.ts';
import { combines } from '../state/combination.ts';
import { compared, type Item, resetOptions } from '../state/items.ts';
import { menu, revealing } from '../state/rows.ts';
import { TURNS, type Turn } from '../state/turns.ts';
import { Button } from './elements.tsx';
import { canRepeat, convertItem, FormatField, isComparable, removeRow, turnItem } from './file-actions.tsx';
import { marksOf, Remark } from './file-marks.tsx';

/** Space between the menu, its button and the edges of the window, in pixels. */
const GAP_PX = 4;

/** The menu that is open, if there is one. */
export const OpenMenu = () => menu.value && <FileMenu key={menu.value.item.id} {...menu.value} />;

/** The menu of a row: all that can be done with a file. Escape or a click beside it closes it. */
function FileMenu({ item, anchor }: { item: Item; anchor: HTMLElement }) {
  const { file, own } = item;
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!element.current) return;
    element.current.showPopover();
    const { top, bottom, right } = anchor.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height, style } = element.current;
    const isBelow = bottom + GAP_PX + height < innerHeight || bottom < innerHeight - top;
    const y = isBelow ? bottom + GAP_PX : top - GAP_PX - height;
    style.top = `${Math.max(GAP_PX, Math.min(y, innerHeight - height - GAP_PX))}px`;
    style.left = `${Math.max(GAP_PX, right - width)}px`;
    element.current.querySelector<HTMLElement>('button, select')?.focus();
  }, [anchor]);
  const close = (): void => element.current?.hidePopover();
  const act = (action: () => void) => () => {
    close();
    action();
  };
  const state = item.state.value;
  const reached = combines.value ? undefined : describeOutcome(state);
  const shared = state.at === 'done' && !combines.value ? [{ file, result: state.result }] : [];
  const canTurn = ['ready', 'done'].includes(state.at);
  return (
    <div
      ref={element}
      popover="auto"
      class="menu"
      role="dialog"
      aria-label={`More for ${file.name}`}
      onToggle={({ newState }) => {
        if (newState === 'closed') menu.value = undefined;
      }}
      onKeyDown={handleKey}
    >
      {reached && <p class="file-state">{reached}</p>}
      {marksOf(item).map(({ text, ...look }) => (
        <Remark key={text} {...look}>
          {text}
        </Remark>
      ))}
      {isComparable(item) && (
        <Button
          look="bare"
          icon="compare"
          onClick={act(() => {
            compared.value = item;
          })}
        >
          Compare
        </Button>
      )}
      {isLarger(item) && (
        <Button look="bare" icon="back" onClick={act(() => keepOriginals([item]))}>
          Keep the original
        </Button>
      )}
      {canShare(shared) && (
        <Button look="bare" icon="share" onClick={act(() => share(shared))}>
          Share
        </Button>
      )}
      {canRepeat(item) && (
        <Button look="bare" icon="again" onClick={act(() => convertItem(item))}>
          Convert again
        </Button>
      )}
      {!combines.value && <FormatField item={item} tabIndex={0} />}
      {canTurn &&
        Object.entries(TURNS).map(([by, label]) => (
          <Button key={by} look="bare" icon={by as Turn} onClick={() => turnItem(item, by as Turn)}>
            {label}
          </Button>
        ))}
      {Object.keys(own.value).length > 0 && (
        <Button
          look="bare"
          icon="back"
          aria-label={`Reset the options of ${file.name}`}
          onClick={act(() => resetOptions(item))}
        >
          Reset its options
        </Button>
      )}
      <Button
        look="bare"
        icon="note"
        onClick={act(() => {
          revealing.value = item;
        })}
      >
        What it gives away
      </Button>
      <Button look="bare" icon="remove" onClick={act(() => removeRow(anchor, item))}>
        Remove
      </Button>
    </div>
  );
}

/** Moves the focus with the arrow keys. In the list of formats, they choose one. */
function handleKey(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const { key, currentTarget, target } = event;
  if (!['ArrowUp', 'ArrowDown'].includes(key) || target instanceof HTMLSelectElement) return;
  event.preventDefault();
  const entries = [...currentTarget.querySelectorAll<HTMLElement>('button, select')];
  const at = entries.indexOf(target as HTMLElement) + (key === 'ArrowUp' ? -1 : 1);
  entries.at(at % entries.length)?.focus();
}
