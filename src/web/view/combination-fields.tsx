/** @module The options of the one file that all files become. */
import { FRAME_DELAY_MS } from '../../tables/formats.ts';
import { canCombine, DEFAULT_NAME } from '../state/combination.ts';
import { items } from '../state/items.ts';
import { combinesPictures, FORMATS, formatLabel, options, setOption } from '../state/options.ts';
import { Labelled } from './elements.tsx';
import { NumberField, Select } from './fields.tsx';

/** The switch that makes one file of all, and what belongs to it. Shown where it is of use. */
export function CombinationFields() {
  const { format, combine } = options.value;
  if (!canCombine.value || !(combine || format === 'pdf' || items.value.length > 1)) return null;
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox states whether it is checked
          role="switch"
          name="combine"
          checked={combine}
          onChange={({ currentTarget }) => setOption('combine', currentTarget.checked)}
        />
        <span>
          One file <small>all files in one {formatLabel}, in the order of the list</small>
        </span>
      </label>
      {combine && <PaperFields />}
      {combine && combinesPictures(format) && <DelayField />}
    </>
  );
}

/** The size, the margin and the orientation of the pages of a PDF. */
export function PaperFields() {
  const { format, pageSize } = options.value;
  if (!FORMATS[format].paper) return null;
  return (
    <>
      <div class="sides">
        <Select name="pageSize" />
        <NumberField name="pageMargin" fallback={0} />
      </div>
      {pageSize !== 'image' && <Select name="pageOrientation" />}
    </>
  );
}

/** The time of each picture of an animation. */
const DelayField = () => (
  <Labelled label="Time of each picture">
    <span class="with-unit">
      <input
        type="number"
        inputMode="numeric"
        name="delay"
        min={FRAME_DELAY_MS.min}
        max={FRAME_DELAY_MS.max}
        placeholder={String(FRAME_DELAY_MS.default)}
        value={options.value.delay}
        onInput={({ currentTarget }) => setOption('delay', currentTarget.value)}
      />
      <span aria-hidden="true">ms</span>
    </span>
  </Labelled>
);

/** The name under which the one file is saved. It has no effect on how it is made. */
export const CombinedNameField = () => (
  <Labelled label="Name of the file">
    <input
      type="text"
      name="name"
      spellcheck={false}
      autocapitalize="none"
      placeholder={DEFAULT_NAME}
      value={options.value.name}
      onInput={({ currentTarget }) => setOption('name', currentTarget.value)}
    />
  </Labelled>
);
