import { useContext } from 'preact/hooks';
import { OUTPUTS } from '../../formats.ts';
import { MAX_PAGE, OPTIONS } from '../../options.ts';
import { isPages } from '../state/options.ts';
import { FieldChoices } from './fields.tsx';

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
      <label class="field">
        <span class="label">{OPTIONS.pages.control.label}</span>
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
      </label>
      <small id="pages-hint" aria-live="polite" class={error && 'error'}>
        {error || hint}
      </small>
    </div>
  );
}
