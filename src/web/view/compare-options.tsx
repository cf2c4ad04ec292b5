import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { OUTPUTS } from '../../formats.ts';
import { formats } from '../state/formats.ts';
import { applyToAll, type Item, resetOptions } from '../state/items.ts';
import { FieldChoices, QualityField, Select } from './fields.tsx';
import { Icon } from './icons.tsx';
import { SizeFields } from './size-fields.tsx';
import { TurnButtons } from './turns.tsx';

interface CompareOptionsProps {
  readonly item: Item;
  readonly isCropping: Signal<boolean>;
  /** Whether the browser can show the original. */
  readonly canCrop: boolean;
  readonly children: ComponentChildren;
}

/** The options of one file, which can become those of all files. */
export function CompareOptions({ item, isCropping, canCrop, children }: CompareOptionsProps) {
  const { all } = useContext(FieldChoices);
  const isOwn = Object.keys(item.own.value).length > 0;
  const outputs = formats.value?.output ?? [all().format];
  return (
    <>
      <section class="compare-foot own" aria-label="Options of this file">
        <div class="tools">
          <TurnButtons item={item} />
          <button
            type="button"
            class="button plain"
            aria-pressed={isCropping.value}
            disabled={!canCrop}
            onClick={() => {
              isCropping.value = !isCropping.value;
            }}
          >
            <Icon name="crop" />
            Crop
          </button>
        </div>
        <Select
          name="format"
          label="Convert to"
          labels={Object.fromEntries(outputs.map((type) => [type, OUTPUTS[type].label]))}
        />
        <QualityField />
        <SizeFields />
      </section>
      <div class="compare-foot">
        <div class="tools">
          <button type="button" class="button plain" disabled={!isOwn} onClick={() => resetOptions(item)}>
            Reset
          </button>
          <button type="button" class="button plain" disabled={!isOwn} onClick={() => applyToAll(item)}>
            Apply to all
          </button>
        </div>
        {children}
      </div>
    </>
  );
}
