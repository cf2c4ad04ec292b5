import { signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { combines } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import {
  FORMATS,
  fields,
  isSet,
  options,
  type PageFormat,
  SMALLEST,
  setOption,
  summary,
  unset,
} from '../state/options.ts';
import { applySettings, chosenSettings, settings } from '../state/settings.ts';
import { CombinationFields } from './combination-fields.tsx';
import { Entries, Icon, Labelled, Segments } from './elements.tsx';
import { QualityField } from './fields.tsx';
import { SizeChoice } from './size-fields.tsx';

/** ID of the form's element. Buttons outside the form refer to it. */
export const FORM_ID = 'choices';

/** Returns whether all options are valid. Otherwise, the browser shows what is wrong. */
export const checkOptions = (): boolean =>
  (document.getElementById(FORM_ID) as HTMLFormElement).reportValidity();

/** Whether the options are visible on a narrow screen although there are files. */
const isExpanded = signal(false);

/**
 * The options. On a narrow screen with files, a line that expands. `onConvert` converts what is not
 * converted with them.
 */
export function Side({ onConvert }: { onConvert: () => void }) {
  const side = useRef<HTMLElement>(null);
  const wasExpanded = useRef(false);
  useLayoutEffect(() => {
    if (wasExpanded.current !== isExpanded.value) side.current?.scrollIntoView({ block: 'nearest' });
    // The focused field is hidden now.
    if (!isExpanded.value && side.current?.contains(document.activeElement))
      side.current.querySelector<HTMLElement>('.side-toggle')?.focus();
    wasExpanded.current = isExpanded.value;
  });
  return (
    <aside ref={side} class={isExpanded.value ? 'side' : 'side collapsed'} aria-label="Options">
      <button
        type="button"
        class="side-toggle"
        aria-expanded={isExpanded.value}
        aria-controls={FORM_ID}
        onClick={() => {
          isExpanded.value = !isExpanded.value;
        }}
      >
        {summary}
        <Icon name="expand" />
      </button>
      <OptionsForm onConvert={onConvert} />
    </aside>
  );
}

/** Form for the options. Submitting it converts all files not yet converted with these. */
function OptionsForm({ onConvert }: { onConvert: () => void }) {
  return (
    <form
      id={FORM_ID}
      class="options"
      onSubmit={(event) => {
        event.preventDefault();
        isExpanded.value = false; // the results are below
        if (combines.value) load(import('../actions/combine.ts'), ({ combine }) => combine());
        else onConvert();
      }}
      onInvalidCapture={({ currentTarget }) => {
        // The browser shows no message at a hidden field, nor waits until the page is rendered.
        currentTarget.parentElement?.classList.remove('collapsed');
        isExpanded.value = true;
      }}
    >
      <PresetField />
      <FormatField />
      {(options.value.format === 'pdf' || options.value.combine) && <CombinationFields />}
      <SizeChoice />
      <QualityField />
      <More />
    </form>
  );
}

/** Runs an action of a module that the first visit does not load. */
const load = async <T,>(loading: Promise<T>, act: (loaded: T) => void): Promise<void> =>
  loading.then(act, () => alert('A part of the page could not be loaded. Reload the page.'));

/** Before the names of settings of this browser, to tell them from the presets of the server. */
const OWN = 'own:';

/** The presets of the server, and the settings of this browser. */
function PresetField() {
  const presets = formats.value?.presets ?? [];
  const own = Object.keys(settings.value);
  if (presets.length + own.length === 0) return null;
  const chosen = chosenSettings.value;
  return (
    <Labelled label="Preset">
      <select
        name="preset"
        value={chosen === undefined ? options.value.preset : OWN + chosen}
        onChange={({ currentTarget: { value } }) => {
          if (value.startsWith(OWN)) applySettings(value.slice(OWN.length));
          else if (value === '' && chosen !== undefined) applySettings('');
          else setOption('preset', value);
        }}
      >
        <option value="">None</option>
        <Entries of={presets.map((name) => [name, name])} />
        {own.length > 0 && (
          <optgroup label="My settings">
            <Entries of={own.map((name) => [OWN + name, name])} />
          </optgroup>
        )}
      </select>
    </Labelled>
  );
}

/** The formats that are always visible. */
const USUAL: readonly (PageFormat | '')[] = ['', SMALLEST, 'webp', 'jpg', 'png', 'pdf'];

/** The formats to choose from; empty for that of the preset. */
function FormatField() {
  const { preset, format } = options.value;
  const all: readonly (PageFormat | '')[] = formats.value ? [SMALLEST, ...formats.value.output] : [format];
  const choices = preset === '' ? all : (['', ...all] as const);
  const usual = USUAL.filter((type) => choices.includes(type));
  const others = choices.filter((type) => !USUAL.includes(type));
  const common = {
    name: 'output_format',
    labels: (type: PageFormat | '') => (type ? FORMATS[type].label : 'Preset'),
    chosen: isSet('format') ? format : ('' as const),
    onChoose: (type: PageFormat | '') => (type ? setOption('format', type) : unset('format')),
  };
  return (
    <fieldset class="formats">
      <legend>Convert to</legend>
      <Segments values={usual} {...common} />
      {common.chosen === SMALLEST && (
        <small>For each file, the format that takes the fewest bytes and looks the same.</small>
      )}
      {others.length > 0 && (
        <details open={others.includes(common.chosen)}>
          <summary>Other…</summary>
          <Segments values={others} {...common} />
        </details>
      )}
    </fieldset>
  );
}

/** Less common options, which the first visit loads only if one of them is set. */
const moreOptions = signal<typeof import('./more-options.tsx').MoreOptions | undefined>(undefined);

function More() {
  const isOpen = useSignal(hasMore(fields.peek())).peek();
  const Loaded = moreOptions.value;
  return (
    <details
      class="more"
      open={isOpen}
      onToggle={({ currentTarget }) => {
        if (!currentTarget.open) return;
        currentTarget.scrollIntoView({ block: 'nearest' }); // the panel leaves the window if it is too high for it
        if (moreOptions.value) return;
        load(import('./more-options.tsx'), ({ MoreOptions }) => {
          moreOptions.value = MoreOptions;
        });
      }}
    >
      <summary>More</summary>
      {Loaded && <Loaded />}
    </details>
  );
}

/** The fields that are always visible. */
const FIRST = ['preset', 'output_format', 'quality', 'width', 'height', 'scale', 'fit', 'combine'];

const hasMore = (query: URLSearchParams): boolean => [...query.keys()].some((name) => !FIRST.includes(name));
