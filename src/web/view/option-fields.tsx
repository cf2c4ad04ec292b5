/** @module The fields of options that need more than a list, a number or a checkbox. */
import { useSignal } from '@preact/signals';
import { useContext, useRef } from 'preact/hooks';
import { DEFAULT_PATTERN } from '../../base/name-pattern.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import { MAX_PAGE, OPTIONS } from '../../tables/options.ts';
import { accepted } from '../state/formats.ts';
import { exampleName, namePattern, patternError } from '../state/names.ts';
import { isExact, isPages } from '../state/options.ts';
import { setWatermark, watermark } from '../state/watermark.ts';
import { Button, Entries, Labelled } from './elements.tsx';
import { Check, FieldChoices, NumberField, Select } from './fields.tsx';

/** Ways to state the size of results. */
const UNITS = { pixels: 'In pixels', percent: 'In percent', double: '2×, for drawings' } as const;
type Unit = keyof typeof UNITS;
/** Scale of the last way, in percent. */
const DOUBLE = '200';
/** Scale at first in percent. */
const FIRST_PERCENT = '50';

/** The size of results: at most a width and a height, or a scale. */
export function SizeFields() {
  const { all, set } = useContext(FieldChoices);
  const options = all();
  const { scale } = options;
  /** The way that was chosen last. It decides while the field of the scale is empty. */
  const chosen = useSignal<Unit>('pixels');
  const isDouble = scale === DOUBLE && chosen.value !== 'percent';
  const scaled = isDouble ? 'double' : 'percent';
  const unit: Unit = scale !== '' || chosen.value === 'percent' ? scaled : 'pixels';
  const choose = (to: Unit): void => {
    chosen.value = to;
    const scales = { pixels: '', percent: FIRST_PERCENT, double: DOUBLE };
    set({ scale: scales[to], ...(to !== 'pixels' && { width: '', height: '' }) });
  };
  return (
    <>
      <Labelled label="Size">
        <select
          name="unit"
          value={unit}
          onChange={({ currentTarget }) => choose(currentTarget.value as Unit)}
        >
          <Entries of={Object.entries(UNITS)} />
        </select>
      </Labelled>
      {unit === 'pixels' && (
        <div class="sides">
          <NumberField name="width" {...(isExact(options) && { label: 'Width' })} />
          <NumberField name="height" {...(isExact(options) && { label: 'Height' })} />
        </div>
      )}
      {unit === 'percent' && <NumberField name="scale" fallback={100} />}
    </>
  );
}

/** Pages of a document, by their numbers or a word. The browser does not submit an invalid text. */
export function PagesField() {
  const { all, isSet, set } = useContext(FieldChoices);
  const { pages, format, preset } = all();
  const isDocument = !isSet('format') || OUTPUTS[format].pages;
  const error = isPages(pages) ? '' : `Type numbers from 1 to ${MAX_PAGE}, such as 1-3,5, or all, or first.`;
  const hint = isDocument
    ? 'Numbers such as 1-3,5, or all, or first.'
    : 'Numbers such as 1-3,5. Several pages become images in a ZIP archive.';
  return (
    <div class="field">
      <Labelled label={OPTIONS.pages.control.label}>
        <input
          ref={(input) => input?.setCustomValidity(error)}
          type="text"
          name="pages"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="none"
          placeholder={preset ? 'preset' : isDocument ? 'all' : 'first'}
          value={pages}
          aria-invalid={error !== ''}
          aria-describedby="pages-hint"
          onInput={({ currentTarget }) =>
            set({ pages: currentTarget.value.replaceAll(/\s/g, '').toLowerCase() })
          }
        />
      </Labelled>
      <small id="pages-hint" aria-live="polite" class={error && 'error'}>
        {error || hint}
      </small>
    </div>
  );
}

/** The image that is put on each result, with its place, opacity and size. */
export function WatermarkFields() {
  const picker = useRef<HTMLInputElement>(null);
  const remove = (): void => {
    setWatermark(undefined);
    if (!picker.current) return;
    picker.current.value = '';
    picker.current.focus();
  };
  return (
    <>
      <div class="field">
        <Labelled label="Watermark">
          <input
            ref={picker}
            type="file"
            accept={accepted.value}
            onChange={({ currentTarget }) => setWatermark(currentTarget.files?.[0])}
          />
        </Labelled>
        {watermark.value && <Button onClick={remove}>Remove the watermark</Button>}
      </div>
      {watermark.value && (
        <>
          <Select name="watermarkPosition" />
          <div class="sides">
            <NumberField name="watermarkOpacity" />
            <NumberField name="watermarkScale" />
          </div>
          <Check name="watermarkRepeat" />
        </>
      )}
    </>
  );
}

/** Pattern for the names under which results are saved, with an example. It has no effect on their conversion. */
export const NamePatternField = () => (
  <div class="field">
    <Labelled label="Names of results">
      <input
        type="text"
        spellcheck={false}
        autocapitalize="none"
        placeholder={DEFAULT_PATTERN}
        value={namePattern.value}
        aria-invalid={patternError.value !== undefined}
        aria-describedby="names-hint"
        onInput={({ currentTarget }) => {
          namePattern.value = currentTarget.value || DEFAULT_PATTERN;
        }}
        onBlur={({ currentTarget }) => {
          currentTarget.value = namePattern.value;
        }}
      />
    </Labelled>
    <small id="names-hint" aria-live="polite" class={patternError.value && 'error'}>
      {patternError.value ?? `Example: ${exampleName.value}. Words: {name}, {width}, {height}, {number}.`}
    </small>
  </div>
);
