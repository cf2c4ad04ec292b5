import { signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import {
  combinesFrames,
  DPI,
  hasBytesLimit,
  INPUTS,
  OUTPUTS,
  type OutputType,
} from '../../tables/formats.ts';
import { fieldName, OPTIONS, optionsWith } from '../../tables/options.ts';
import { convert } from '../actions/convert-files.ts';
import { command } from '../actions/curl.ts';
import { inputTypeOf } from '../format.ts';
import { combines } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import { announcement, items, pending } from '../state/items.ts';
import {
  fields,
  hasBox,
  hasPosition,
  isLossless,
  isSet,
  options,
  setOption,
  summary,
  unset,
} from '../state/options.ts';
import { CombinationFields, CombinedNameField, PaperFields } from './combination-fields.tsx';
import { Button, Icon } from './elements.tsx';
import { Check, Field, NumberField, QualityField, Select } from './fields.tsx';
import { NamePatternField, PagesField, SizeFields, WatermarkFields } from './option-fields.tsx';

/** ID of the form's element. Buttons outside the form refer to it. */
export const FORM_ID = 'choices';

/** Returns whether all options are valid. Otherwise, the browser shows what is wrong. */
export const checkOptions = (): boolean =>
  (document.getElementById(FORM_ID) as HTMLFormElement).reportValidity();

/** Whether the options are visible on a narrow screen although there are files. */
const isExpanded = signal(false);

/** The options and the curl command. On a narrow screen with files, a line that expands. */
export function Side() {
  const side = useRef<HTMLElement>(null);
  const wasExpanded = useRef(false);
  useLayoutEffect(() => {
    if (wasExpanded.current && !isExpanded.value) side.current?.scrollIntoView({ block: 'nearest' });
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
      <OptionsForm />
      <Curl />
    </aside>
  );
}

/** Form for the conversion options. Submitting it converts all files that are not converted with these options yet. */
function OptionsForm() {
  const presets = formats.value?.presets ?? [];
  return (
    <form
      id={FORM_ID}
      class="options"
      onSubmit={(event) => {
        event.preventDefault();
        isExpanded.value = false; // the results are below
        if (combines.value) combineAll();
        else convert(pending.value);
      }}
      onInvalidCapture={({ currentTarget }) => {
        // The browser cannot show its message at a field that is hidden, nor wait until the page is rendered.
        currentTarget.parentElement?.classList.remove('collapsed');
        isExpanded.value = true;
      }}
    >
      {presets.length > 0 && (
        <Select
          label="Preset"
          name="preset"
          none="None"
          labels={Object.fromEntries(presets.map((name) => [name, name]))}
        />
      )}
      <FormatField />
      <CombinationFields />
      <QualityField />
      <SizeFields />
      <Select name="fit" disabled={!hasBox(options.value)} hint="Needs a width and a height." />
      <Special />
      {!(combines.value && combinesFrames(options.value.format)) && <Select name="metadata" />}
      <More />
      {combines.value ? <CombinedNameField /> : <NamePatternField />}
    </form>
  );
}

/** Makes one file of all. The first visit does not load what that needs. */
const combineAll = (): Promise<void> =>
  import('../actions/combine.ts').then(
    ({ combine }) => combine(),
    () => alert('A part of the page could not be loaded. Reload it.'),
  );

/** The formats to choose from; empty for that of the preset. */
function FormatField() {
  const { preset, format } = options.value;
  const chosen = isSet('format') ? format : '';
  const choices: readonly (OutputType | '')[] = formats.value?.output ?? [format];
  return (
    <fieldset class="formats">
      <legend>Convert to</legend>
      <div class="segments">
        {(preset === '' ? choices : ['' as const, ...choices]).map((type) => (
          <label key={type} class="segment">
            <input
              type="radio"
              name="output_format"
              value={type}
              checked={type === chosen}
              onChange={() => (type ? setOption('format', type) : unset('format'))}
            />
            <span>{type ? OUTPUTS[type].label : 'Preset'}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Options for some kinds of files. They are visible if a file in the list needs them, or if they are set. */
function Special() {
  const { preset, format, fit, crop, background, frames, pages, dpi } = options.value;
  const { alpha, animation, pages: hasPages, takesBackground } = OUTPUTS[format];
  const types = items.value.map(({ file }) => inputTypeOf(file)).filter((type) => type !== undefined);
  const accepted = formats.value?.input;
  const inputs = [...new Set(types)].map((type) => INPUTS[type]);
  const mayFlatten = alpha === 'none' || takesBackground === true;
  const flattens = mayFlatten && inputs.some(({ opaque }) => !opaque);
  // One animation of all files has a frame for each.
  const hasFrames =
    (((animation || hasPages) && inputs.some((input) => input.animation)) || frames !== '') &&
    !(combines.value && combinesFrames(format));
  const hasBorders = hasBox(options.value) && fit === 'contain';
  return (
    <>
      {crop !== '' && (
        <div class="field">
          <span class="label">{OPTIONS.crop.control.label}</span>
          <span class="colour number">
            {crop}
            <ResetButton name="crop" />
          </span>
        </div>
      )}
      {(flattens || hasBorders || background !== '') && (
        <Background fallback={preset ? 'as in the preset' : alpha === 'none' ? 'white' : 'transparent'} />
      )}
      {hasFrames && <Select name="frames" fallback={animation ? 'all' : 'first'} />}
      {(types.some((type) => INPUTS[type].pages && accepted?.includes(type)) || pages !== '') && (
        <PagesField />
      )}
      {accepted?.includes('pdf') && (types.includes('pdf') || dpi !== '') && (
        <NumberField name="dpi" fallback={DPI.default} />
      )}
    </>
  );
}

/** Colour of borders, and of what was transparent. `fallback` names the default. */
function Background({ fallback }: { fallback: string }) {
  const { background } = options.value;
  return (
    <div class="field">
      <label class="label" for="background">
        {OPTIONS.background.control.label}
      </label>
      <span class="colour">
        <input
          id="background"
          type="color"
          name="background"
          value={background || '#ffffff'}
          onInput={({ currentTarget }) => setOption('background', currentTarget.value)}
        />
        {background || fallback}
        {background && <ResetButton name="background" />}
      </span>
    </div>
  );
}

/** Makes the default of an option apply again. */
const ResetButton = ({ name }: { name: 'background' | 'crop' }) => (
  <Button aria-label={`Reset the ${name}`} onClick={() => setOption(name, '')}>
    Reset
  </Button>
);

/** Options whose control follows from the kind of their values. */
const OTHERS = optionsWith('filter', 'colours');
/** Options of {@link More}. */
const MORE = [
  ...([
    'pageSize',
    'pageMargin',
    'pageOrientation',
    'position',
    'maxBytes',
    'enlarge',
    'rotate',
    'flip',
    'trim',
    'lossless',
  ] as const),
  ...OTHERS,
];

/** Less common options. Initially open if the page's address contains one of them. */
function More() {
  const { format } = options.value;
  const isOpen = useSignal(MORE.some((name) => fields.value.has(fieldName(name)))).peek();
  return (
    <details class="more" open={isOpen}>
      <summary>More</summary>
      <div class="options">
        {!combines.value && <PaperFields />}
        <Select
          name="position"
          disabled={!hasPosition(options.value)}
          hint="Needs the fit Fill and crop, or Add borders."
        />
        {hasBytesLimit(format) && !combines.value && (
          <NumberField name="maxBytes" disabled={isLossless(options.value)} />
        )}
        <Check name="enlarge" />
        <Select name="rotate" />
        <Select name="flip" none="None" />
        <NumberField name="trim" fallback="off" />
        {OTHERS.map((name) => (
          <Field key={name} name={name} />
        ))}
        {OUTPUTS[format].lossless && <Check name="lossless" />}
        <WatermarkFields />
      </div>
    </details>
  );
}

/** The curl command for the current options and files. */
function Curl() {
  const copied = useSignal('');
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(command.value);
    copied.value = command.value;
    announcement.value = 'Command copied.';
  };
  return (
    <details class="curl">
      <summary>As curl</summary>
      <textarea readOnly rows={6} aria-label="curl command" value={command} />
      {/* Browsers provide the clipboard only over HTTPS and on localhost. */}
      {navigator.clipboard && (
        <Button onClick={copy}>{copied.value === command.value ? 'Copied' : 'Copy'}</Button>
      )}
    </details>
  );
}
