import { useSignal } from '@preact/signals';
import { hasBytesLimit, MAX_DIMENSION, OUTPUTS } from '../../formats.ts';
import { convert } from '../actions/convert.ts';
import { formats } from '../state/formats.ts';
import { pending } from '../state/items.ts';
import {
  FIT_LABELS,
  fields,
  hasBox,
  hasPosition,
  isLossless,
  MAX_KILOBYTES,
  MIN_KILOBYTES,
  options,
  POSITION_LABELS,
  setOptions,
} from '../state/options.ts';

/** ID of the form's element. Buttons outside the form refer to it. */
export const FORM_ID = 'choices';

/** Form for the conversion options. Submitting it converts all files that are not converted with these options yet. */
export function OptionsForm() {
  const { format, quality, width, height, fit, keepMetadata } = options.value;
  return (
    <form
      id={FORM_ID}
      class="options"
      onSubmit={(event) => {
        event.preventDefault();
        convert(pending.value);
      }}
    >
      <fieldset class="formats">
        <legend>Convert to</legend>
        <div class="segments">
          {(formats.value?.output ?? [format]).map((type) => (
            <label key={type} class="segment">
              <input
                type="radio"
                name="output_format"
                value={type}
                checked={type === format}
                onChange={() => setOptions({ format: type })}
              />
              <span>{OUTPUTS[type].label}</span>
            </label>
          ))}
        </div>
      </fieldset>
      {OUTPUTS[format].quality && (
        <label class="field">
          <span class="label">
            Quality{' '}
            <span class="number" aria-hidden="true">
              {quality}
            </span>
          </span>
          <input
            type="range"
            name="quality"
            min="1"
            max="100"
            value={quality}
            disabled={isLossless(options.value)}
            onInput={({ currentTarget }) => setOptions({ quality: currentTarget.valueAsNumber })}
          />
        </label>
      )}
      <div class="sides">
        <NumberField
          label="Max width"
          name="width"
          unit="px"
          max={MAX_DIMENSION}
          value={width}
          onChange={(value) => setOptions({ width: value })}
        />
        <NumberField
          label="Max height"
          name="height"
          unit="px"
          max={MAX_DIMENSION}
          value={height}
          onChange={(value) => setOptions({ height: value })}
        />
      </div>
      <Select
        label="Fit"
        name="fit"
        labels={FIT_LABELS}
        value={fit}
        // Without a maximum size, the fit has no effect.
        disabled={!hasBox(options.value)}
        onChange={(value) => setOptions({ fit: value })}
      />
      <label class="check">
        <input
          type="checkbox"
          name="keep_metadata"
          checked={keepMetadata}
          onChange={({ currentTarget }) => setOptions({ keepMetadata: currentTarget.checked })}
        />
        <span>
          Keep metadata <small>camera, location, colour profile</small>
        </span>
      </label>
      <More />
    </form>
  );
}

/** Less common options. Initially open if the page's address contains one of them. */
function More() {
  const { format, position, enlarge, lossless, maxKilobytes } = options.value;
  const isOpen = useSignal(
    ['position', 'enlarge', 'lossless', 'max_bytes'].some((name) => fields.value.has(name)),
  ).peek();
  return (
    <details class="more" open={isOpen}>
      <summary>More</summary>
      <div class="options">
        <Select
          label="Position"
          name="position"
          labels={POSITION_LABELS}
          value={position}
          disabled={!hasPosition(options.value)}
          onChange={(value) => setOptions({ position: value })}
        />
        {hasBytesLimit(format) && (
          <NumberField
            label="Max file size"
            name="max_kilobytes"
            unit="KB"
            min={MIN_KILOBYTES}
            max={MAX_KILOBYTES}
            step="any"
            value={maxKilobytes}
            disabled={isLossless(options.value)}
            onChange={(value) => setOptions({ maxKilobytes: value })}
          />
        )}
        <label class="check">
          <input
            type="checkbox"
            name="enlarge"
            checked={enlarge}
            onChange={({ currentTarget }) => setOptions({ enlarge: currentTarget.checked })}
          />
          <span>
            Enlarge <small>images that are smaller than the maximum size</small>
          </span>
        </label>
        {OUTPUTS[format].lossless && (
          <label class="check">
            <input
              type="checkbox"
              name="lossless"
              checked={lossless}
              onChange={({ currentTarget }) => setOptions({ lossless: currentTarget.checked })}
            />
            <span>
              Lossless <small>keeps every pixel, for a larger file</small>
            </span>
          </label>
        )}
      </div>
    </details>
  );
}

interface SelectProps<T extends string> {
  label: string;
  name: string;
  /** Labels by value, in the order of the list. */
  labels: Readonly<Record<T, string>>;
  value: T;
  disabled: boolean;
  onChange: (value: T) => void;
}

function Select<T extends string>({ label, name, labels, value, disabled, onChange }: SelectProps<T>) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select
        name={name}
        value={value}
        disabled={disabled}
        onChange={({ currentTarget }) => onChange(currentTarget.value as T)}
      >
        {Object.entries<string>(labels).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
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

/** Input for a limit. The browser validates it and does not submit an invalid form. */
function NumberField(props: NumberProps) {
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
          placeholder="any"
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
