import { OUTPUTS, type OutputType } from '../../formats.ts';
import { isLossless, isSet, type Options, options, setOption, unset } from '../state/options.ts';

/** Slider for the quality, if the format has one. */
export function QualityField({ format }: { format: OutputType }) {
  const { quality } = options.value;
  if (!OUTPUTS[format].quality) return null;
  return (
    <label class="field quality">
      <span class="label">
        Quality{' '}
        <span class="number" aria-hidden="true">
          {isSet('quality') ? quality : 'preset'}
        </span>
      </span>
      <input
        type="range"
        name="quality"
        min="1"
        max="100"
        value={quality}
        {...(!isSet('quality') && { 'aria-valuetext': 'as in the preset' })}
        disabled={isLossless({ ...options.value, format })}
        onInput={({ currentTarget }) => setOption('quality', currentTarget.valueAsNumber)}
      />
    </label>
  );
}

/** Names of the options that have such values. */
type OptionOf<T> = { [K in keyof Options]: Options[K] extends T ? K : never }[keyof Options];

interface SelectProps<K extends OptionOf<string>> {
  label: string;
  name: K;
  /** Label of the first choice, an empty value. By default, there is one if a preset has the value. */
  none?: string;
  /** Labels by value, in the order of the list. */
  labels: Readonly<Record<Exclude<Options[K], ''>, string>>;
  /** What an empty value means, which is stored instead of this one, except to override a preset. */
  fallback?: Options[K];
  disabled?: boolean;
  /** Why it is disabled. */
  hint?: string;
}

/** A list of choices, with the reason if it is disabled. */
export function Select<K extends OptionOf<string>>(props: SelectProps<K>) {
  const { label, name, labels, fallback, disabled = false, hint } = props;
  const { preset } = options.value;
  const none = props.none ?? (preset && 'As in the preset');
  return (
    <div class="field">
      <label class="field">
        <span class="label">{label}</span>
        <select
          name={name}
          value={isSet(name) ? options.value[name] || fallback || '' : ''}
          disabled={disabled}
          {...(disabled && { 'aria-describedby': `${name}-hint` })}
          onChange={({ currentTarget: { value } }) => {
            if (value === '' && props.none === undefined) unset(name);
            else setOption(name, (value === fallback && !preset ? '' : value) as Options[K]);
          }}
        >
          {none && <option value="">{none}</option>}
          {Object.entries<string>(labels).map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {disabled && <small id={`${name}-hint`}>{hint}</small>}
    </div>
  );
}

interface CheckProps {
  label: string;
  name: OptionOf<boolean>;
  /** What it does. */
  details: string;
}

/** A checkbox, in its third state if a preset has the value. */
export function Check({ label, name, details }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        checked={options.value[name]}
        indeterminate={!isSet(name)}
        onChange={({ currentTarget }) => setOption(name, currentTarget.checked)}
      />
      <span>
        {label} <small>{details}</small>
      </span>
    </label>
  );
}

interface NumberProps {
  label: string;
  name: 'width' | 'height' | 'dpi' | 'maxKilobytes';
  unit: string;
  /** By default 1. */
  min?: number;
  max: number;
  /** By default whole numbers. */
  step?: 'any';
  /** What an empty value means. By default, any number. */
  fallback?: number;
  disabled?: boolean;
}

/** Input for a limit. The browser validates it and does not submit an invalid form. */
export function NumberField(props: NumberProps) {
  const { label, name, unit, min = 1, max, step = '1', fallback = 'any', disabled = false } = props;
  return (
    <label class="field">
      <span class="label">{label}</span>
      <span class="with-unit">
        <input
          type="number"
          inputMode={step === 'any' ? 'decimal' : 'numeric'}
          name={name}
          min={min}
          max={max}
          step={step}
          placeholder={String(options.value.preset ? 'preset' : fallback)}
          value={options.value[name]}
          disabled={disabled}
          onInput={({ currentTarget }) => setOption(name, currentTarget.value)}
          onInvalid={({ currentTarget }) => {
            // The browser cannot show its message at a field that is hidden.
            const section = currentTarget.closest('details');
            if (section) section.open = true;
          }}
        />
        <span aria-hidden="true">{unit}</span>
      </span>
    </label>
  );
}
