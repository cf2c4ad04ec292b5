import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { OUTPUTS } from '../../formats.ts';
import { formats } from '../state/formats.ts';
import { applyToAll, type Item, resetOptions } from '../state/items.ts';
import { choicesOf } from '../state/options.ts';
import { FieldChoices, NumberField, QualityField, Select } from './fields.tsx';
import { TurnButtons } from './turns.tsx';

/** The options of one file, which can become those of all files. */
export function CompareOptions({ item, children }: { item: Item; children: ComponentChildren }) {
  const choices = useMemo(() => choicesOf(item.own), [item]);
  const isOwn = Object.keys(item.own.value).length > 0;
  const outputs = formats.value?.output ?? [choices.all().format];
  return (
    <FieldChoices.Provider value={choices}>
      <section class="compare-foot own" aria-label="Options of this file">
        <div class="tools">
          <TurnButtons item={item} />
        </div>
        <Select
          name="format"
          label="Convert to"
          labels={Object.fromEntries(outputs.map((type) => [type, OUTPUTS[type].label]))}
        />
        <QualityField />
        <div class="sides">
          <NumberField name="width" />
          <NumberField name="height" />
        </div>
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
    </FieldChoices.Provider>
  );
}
