/** @module The fields of options that need more than a list, a number or a checkbox. */
import { useContext, useRef } from 'preact/hooks';
import { DEFAULT_PATTERN } from '../../base/name-pattern.ts';
import { MAX_PAGE, OPTIONS } from '../../tables/options.ts';
import { accepted } from '../state/formats.ts';
import { exampleName, namePattern, patternError } from '../state/names.ts';
import { FORMATS, isPages } from '../state/options.ts';
import { setWatermark, watermark } from '../state/watermark.ts';
import { Button, Labelled } from './elements.tsx';
import { Check, FieldChoices, NumberField, Select } from './fields.tsx';

/** Pages of a document, by their numbers or a word. The browser does not submit an invalid text. */
export function PagesField() {
  const { all, isSet, set } = useContext(FieldChoices);
  const { pages, format, preset } = all();
  const isDocument = !isSet('format') || FORMATS[format].pages;
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

/** What the name of a result can have, by the words of the pattern. */
const NAME_PARTS = { name: 'Name', width: 'Width', height: 'Height', number: 'Number' };

/** Pattern for the names of saved results, with an example. It does not change conversions. */
export function NamePatternField() {
  const input = useRef<HTMLInputElement>(null);
  const insert = (word: string): void => {
    const { current } = input;
    if (!current) return;
    current.focus();
    current.setRangeText(`{${word}}`, current.selectionStart ?? 0, current.selectionEnd ?? 0, 'end');
    namePattern.value = current.value;
  };
  return (
    <div class="field">
      <Labelled label="Names of results">
        <input
          ref={input}
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
      <div class="tools">
        {Object.entries(NAME_PARTS).map(([word, label]) => (
          <Button key={word} icon="add" aria-label={`Insert the ${word}`} onClick={() => insert(word)}>
            {label}
          </Button>
        ))}
      </div>
      <small id="names-hint" aria-live="polite" class={patternError.value && 'error'}>
        {patternError.value ?? `Example: ${exampleName.value}`}
      </small>
    </div>
  );
}
