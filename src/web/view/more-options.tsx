/** @module Less common options, in groups. The first visit does not load them. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { DPI, INPUTS } from '../../tables/formats.ts';
import { OPTIONS, optionsWith } from '../../tables/options.ts';
import { command } from '../actions/curl.ts';
import { inputTypeOf } from '../format.ts';
import { combines } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import { announcement, items } from '../state/items.ts';
import {
  canLimitBytes,
  combinesPictures,
  FORMATS,
  hasBox,
  hasPosition,
  isLossless,
  options,
  setOption,
} from '../state/options.ts';
import { chosenSettings, removeSettings, saveSettings } from '../state/settings.ts';
import { CombinationFields, CombinedNameField, PaperFields } from './combination-fields.tsx';
import { Button, Labelled } from './elements.tsx';
import { Check, Field, NumberField, Select } from './fields.tsx';
import { NamePatternField, PagesField, WatermarkFields } from './option-fields.tsx';

/** Options whose control follows from the kind of their values. */
const OTHERS = optionsWith('filter', 'colours');

/** The options not always visible: some only if a file needs them, or if they are set. */
export function MoreOptions() {
  const { preset, format, fit, crop, background, frames, pages, dpi, combine } = options.value;
  const { alpha, animation, pages: hasPages, takesBackground, lossless } = FORMATS[format];
  const types = items.value.map(({ file }) => inputTypeOf(file)).filter((type) => type !== undefined);
  const accepted = formats.value?.input;
  const inputs = [...new Set(types)].map((type) => INPUTS[type]);
  const flattens = (alpha === 'none' || takesBackground === true) && inputs.some(({ opaque }) => !opaque);
  // One animation of all files has a frame for each.
  const isAnimation = combines.value && combinesPictures(format);
  const mayMove = (animation || hasPages) && inputs.some((input) => input.animation);
  const hasBorders = hasBox(options.value) && fit === 'contain';
  return (
    <div class="options">
      <Group name="Turn and crop">
        <Select name="rotate" />
        <Select name="flip" none="None" />
        {crop !== '' && (
          <div class="field">
            <span class="label">{OPTIONS.crop.control.label}</span>
            <span class="colour number">
              {crop}
              <ResetButton name="crop" />
            </span>
          </div>
        )}
        <NumberField name="trim" fallback="off" />
        <Select
          name="position"
          disabled={!hasPosition(options.value)}
          hint="Needs the fit Fill and crop, or Add borders."
        />
        <Check name="enlarge" />
      </Group>
      <Group name="Look">
        {(flattens || hasBorders || background !== '') && (
          <Background fallback={preset ? 'as in the preset' : alpha === 'none' ? 'white' : 'transparent'} />
        )}
        {OTHERS.map((name) => (
          <Field key={name} name={name} />
        ))}
      </Group>
      <Group name="Bytes">
        {canLimitBytes(format) && !combines.value && (
          <NumberField name="maxBytes" disabled={isLossless(options.value)} />
        )}
        {lossless && <Check name="lossless" />}
      </Group>
      {!isAnimation && (
        <Group>
          <Select name="metadata" />
        </Group>
      )}
      <Group name="Pages and documents">
        {format !== 'pdf' && !combine && <CombinationFields />}
        {!combines.value && <PaperFields />}
        {(mayMove || frames !== '') && !isAnimation && (
          <Select name="frames" fallback={animation ? 'all' : 'first'} />
        )}
        {(types.some((type) => INPUTS[type].pages && accepted?.includes(type)) || pages !== '') && (
          <PagesField />
        )}
        {accepted?.includes('pdf') && (types.includes('pdf') || dpi !== '') && (
          <NumberField name="dpi" fallback={DPI.default} />
        )}
      </Group>
      <Group>{combines.value ? <CombinedNameField /> : <NamePatternField />}</Group>
      <Group>
        <WatermarkFields />
      </Group>
      <Group>
        <SettingsField />
      </Group>
      <Curl />
    </div>
  );
}

/** A group of options, named like its first one by default. Without any, it is hidden. */
const Group = ({ name, children }: { name?: string; children: ComponentChildren }) => (
  <fieldset class="group">
    {name && <legend>{name}</legend>}
    {children}
  </fieldset>
);

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

/** Keeps the options under a name in this browser, or removes those that are chosen. */
function SettingsField() {
  const name = useSignal('');
  const chosen = chosenSettings.value;
  const save = (): void => {
    if (name.value.trim() === '') return;
    saveSettings(name.value.trim());
    announcement.value = `${name.value.trim()} is one of your settings.`;
    name.value = '';
  };
  return (
    <>
      <Labelled label="Save as my settings">
        <span class="colour">
          <input
            type="text"
            placeholder="Name"
            autocomplete="off"
            value={name.value}
            onInput={({ currentTarget }) => {
              name.value = currentTarget.value;
            }}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              event.preventDefault(); // it would convert the files
              save();
            }}
          />
          <Button disabled={name.value.trim() === ''} onClick={save}>
            Save
          </Button>
        </span>
      </Labelled>
      {chosen !== undefined && <Button onClick={() => removeSettings(chosen)}>Delete “{chosen}”</Button>}
    </>
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
