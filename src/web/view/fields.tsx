import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Control, OPTIONS, optionRow } from '../../tables/options.ts';
import { LOOKS_THE_SAME } from '../format.ts';
import {
  AUTO,
  canChooseQuality,
  FORMATS,
  isLossless,
  type Options,
  type PageOption,
  panel,
  rowOf,
} from '../state/options.ts';
import { Button, Entries, Labelled } from './elements.tsx';

/** The options that the fields show and change: those of the panel, or of one file. */
export const FieldChoices = createContext(panel);

/** The quality, if the format has one: a number, or what the server chooses for each picture. */
export function QualityField() {
  const { all, isSet, set } = useContext(FieldChoices);
  const { quality, format } = all();
  const { type, control } = OPTIONS.quality;
  if (!FORMATS[format].quality) return null;
  const isAuto = quality === AUTO && isSet('quality') && canChooseQuality(format);
  const number = quality === AUTO ? String(OPTIONS.quality.default) : quality;
  const chosen = isAuto ? LOOKS_THE_SAME : number;
  return (
    <fieldset class="quality">
      <legend class="label">
        {control.label}{' '}
        <span class="number" aria-hidden="true">
          {isSet('quality') ? chosen : 'preset'}
        </span>
      </legend>
      {canChooseQuality(format) && (
        <Button
          aria-pressed={isAuto}
          title="As small as it can be and look the same"
          disabled={isLossless(all())}
          onClick={() => set({ quality: isAuto ? number : AUTO })}
        >
          Auto
        </Button>
      )}
      <input
        type="range"
        name="quality"
        class={isAuto ? 'unused' : undefined}
        min={type.min}
        max={type.max}
        value={number}
        aria-label={control.label}
        aria-valuetext={isAuto ? LOOKS_THE_SAME : isSet('quality') ? undefined : 'as in the preset'}
        disabled={isLossless(all())}
        onInput={({ currentTarget }) => set({ quality: currentTarget.value })}
      />
    </fieldset>
  );
}

/** Names of the options that have such values. */
type OptionOf<T> = { [K in keyof Options]: Options[K] extends T ? K : never }[keyof Options];

/** Names of the options of the page with a kind of value. */
type OptionOfKind<K extends string> = {
  [N in PageOption]: (typeof OPTIONS)[N]['type']['kind'] extends K ? N : never;
}[PageOption];

interface SelectProps<K extends OptionOf<string>> {
  name: K;
  /** By default, that of the option. */
  label?: string;
  /** Label of the first choice, an empty value. By default, one exists if a preset has it. */
  none?: string | undefined;
  /** Labels by value, in the order of the list. By default, those of the option. */
  labels?: Readonly<Record<string, string>>;
  /** What an empty value means: it is stored instead of this, except to override a preset. */
  fallback?: Options[K];
  disabled?: boolean;
  /** Why it is disabled. */
  hint?: string;
}

/** A list of choices, with the reason if it is disabled. */
export function Select<K extends OptionOf<string>>(props: SelectProps<K>) {
  const { name, fallback, disabled = false, hint } = props;
  const row = rowOf(name);
  const { label = row?.control?.label, labels = row && 'labels' in row.type ? row.type.labels : {} } = props;
  const { all, isSet, set, unset } = useContext(FieldChoices);
  const chosen = all();
  const none = props.none ?? (chosen.preset && 'As in the preset');
  const value = isSet(name) ? chosen[name] || fallback || '' : '';
  // A point of the page's address is not in the list.
  const listed = value === '' || value in labels ? labels : { ...labels, [value]: value };
  return (
    <div class="field">
      <Labelled label={label}>
        <select
          name={name}
          value={value}
          disabled={disabled}
          aria-describedby={disabled ? `${name}-hint` : undefined}
          onChange={({ currentTarget: { value: text } }) => {
            if (text === '' && props.none === undefined) unset(name);
            else set({ [name]: text === fallback && !chosen.preset ? '' : text });
          }}
        >
          {none && <option value="">{none}</option>}
          <Entries of={Object.entries(listed)} />
        </select>
      </Labelled>
      {disabled && <small id={`${name}-hint`}>{hint}</small>}
    </div>
  );
}

/** A checkbox, in its third state if a preset has the value. */
export function Check({ name }: { name: OptionOfKind<'flag'> }) {
  const { all, isSet, set } = useContext(FieldChoices);
  const { label, details }: Control = OPTIONS[name].control;
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        checked={all()[name]}
        indeterminate={!isSet(name)}
        onChange={({ currentTarget }) => set({ [name]: currentTarget.checked })}
      />
      <span>
        {label} <small>{details}</small>
      </span>
    </label>
  );
}

interface NumberProps {
  name: OptionOfKind<'integer' | 'number'>;
  /** By default, that of the option. */
  label?: string | undefined;
  /** What an empty value means. By default, any number. */
  fallback?: number | string;
  disabled?: boolean;
}

/** Input for a number. The browser validates it and does not submit an invalid form. */
export function NumberField(props: NumberProps) {
  const { name, fallback = 'any', disabled = false } = props;
  const { all, set } = useContext(FieldChoices);
  const { type, control } = OPTIONS[name];
  const { unit, factor = 1 }: Control = control;
  const isWhole = type.kind === 'integer' && factor === 1;
  const { label = control.label } = props;
  return (
    <Labelled label={label}>
      <span class="with-unit">
        <input
          type="number"
          inputMode={isWhole ? 'numeric' : 'decimal'}
          name={name}
          min={type.min / factor}
          max={type.max / factor}
          step={isWhole ? 1 : 'any'}
          placeholder={String(all().preset ? 'preset' : fallback)}
          value={all()[name]}
          disabled={disabled}
          onInput={({ currentTarget }) => set({ [name]: currentTarget.value })}
          onInvalid={({ currentTarget }) => {
            // The browser cannot show its message at a field that is hidden.
            const section = currentTarget.closest('details');
            if (section) section.open = true;
          }}
        />
        <span aria-hidden="true">{unit}</span>
      </span>
    </Labelled>
  );
}

interface FieldProps {
  name: Exclude<OptionOfKind<'flag' | 'integer' | 'number' | 'words' | 'numbers'>, 'pages'>;
}

/** The control of an option by the kind of its values. A number is 0 without a value. */
export function Field({ name }: FieldProps) {
  const { type, default: fallback } = optionRow(name);
  if (type.kind === 'flag') return <Check name={name as OptionOfKind<'flag'>} />;
  if ('min' in type) return <NumberField name={name as OptionOfKind<'integer' | 'number'>} fallback={0} />;
  return <Select name={name as OptionOf<string>} none={fallback === undefined ? 'None' : undefined} />;
}
