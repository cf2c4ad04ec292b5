import { OUTPUTS, type OutputType } from '../../formats.ts';
import { isLossless, isSet, type Options, options, setOptions, unset } from '../state/options.ts';

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
        onInput={({ currentTarget }) => setOptions({ quality: currentTarget.valueAsNumber })}
      />
    </label>
  );
}

interface SelectProps<T extends string> {
  label: string;
  name: keyof Options;
  /** Label of the first choice, an empty value. By default, there is one if a preset has the value. */
  none?: string;
  /** Labels by value, in the order of the list. */
  labels: Readonly<Record<T, string>>;
  value: T | '';
  disabled?: boolean;
  /** Why it is disabled. */
  hint?: string;
  /** Called with a value of the labels, or with an empty one if `none` is given. */
  onChange: (value: T) => void;
}

/** A list of choices, with the reason if it is disabled. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { label, name, labels, value, disabled = false, hint, onChange } = props;
  const none = props.none ?? (options.value.preset && 'As in the preset');
  return (
    <div class="field">
      <label class="field">
        <span class="label">{label}</span>
        <select
          name={name}
          value={isSet(name) ? value : ''}
          disabled={disabled}
          {...(disabled && { 'aria-describedby': `${name}-hint` })}
          onChange={({ currentTarget }) => {
            if (currentTarget.value === '' && props.none === undefined) unset(name);
            else onChange(currentTarget.value as T);
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

interface NumberProps {
  label: string;
  name: string;
  unit: string;
  /** By default 1. */
  min?: number;
  max: number;
  /** By default whole numbers. */
  step?: 'any';
  value: string;
  disabled?: boolean;
  onChange: (value: string) => void;
}

interface CheckProps {
  label: string;
  name: keyof Options;
  /** What it does. */
  details: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

/** A checkbox, in its third state if a preset has the value. */
export function Check({ label, name, details, checked, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        checked={checked}
        indeterminate={!isSet(name)}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <span>
        {label} <small>{details}</small>
      </span>
    </label>
  );
}

/** Input for a limit. The browser validates it and does not submit an invalid form. */
export function NumberField(props: NumberProps) {
  const { label, name, unit, min = 1, max, step = '1', value, disabled = false, onChange } = props;
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
          placeholder={options.value.preset ? 'preset' : 'any'}
          value={value}
          disabled={disabled}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
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
