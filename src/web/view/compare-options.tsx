import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { OUTPUTS } from '../../formats.ts';
import { formats } from '../state/formats.ts';
import { applyToAll, type Item, resetOptions } from '../state/items.ts';
import { Button } from './elements.tsx';
import { FieldChoices, QualityField, Select } from './fields.tsx';
import { TurnButtons } from './file-actions.tsx';
import { SizeFields } from './option-fields.tsx';

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
          <Button
            icon="crop"
            aria-pressed={isCropping.value}
            disabled={!canCrop}
            onClick={() => {
              isCropping.value = !isCropping.value;
            }}
          >
            Crop
          </Button>
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
          <Button disabled={!isOwn} onClick={() => resetOptions(item)}>
            Reset
          </Button>
          <Button disabled={!isOwn} onClick={() => applyToAll(item)}>
            Apply to all
          </Button>
        </div>
        {children}
      </div>
    </>
  );
}
