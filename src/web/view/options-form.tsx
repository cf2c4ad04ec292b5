import { OUTPUTS } from '../../formats.ts';
import { convert } from '../client/convert.ts';
import { formats } from '../state/formats.ts';
import { pending } from '../state/items.ts';
import { MAX_DIMENSION, options, setOptions } from '../state/options.ts';

export const FORM_ID = 'choices';

/** Form for the conversion options. Submitting it converts all files that are not converted with these options yet. */
export function OptionsForm() {
  const { format, quality, width, height, keepMetadata } = options.value;
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
            onInput={({ currentTarget }) => setOptions({ quality: currentTarget.valueAsNumber })}
          />
        </label>
      )}
      <div class="sides">
        <Side
          label="Max width"
          name="width"
          value={width}
          onChange={(value) => setOptions({ width: value })}
        />
        <Side
          label="Max height"
          name="height"
          value={height}
          onChange={(value) => setOptions({ height: value })}
        />
      </div>
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
    </form>
  );
}

interface SideProps {
  label: string;
  name: string;
  value: string;
  onChange: (value: string) => void;
}

/** Input for a maximum width or height. The browser validates it and does not submit an invalid form. */
function Side({ label, name, value, onChange }: SideProps) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <span class="with-unit">
        <input
          type="number"
          inputMode="numeric"
          name={name}
          min="1"
          max={MAX_DIMENSION}
          step="1"
          placeholder="any"
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
        <span aria-hidden="true">px</span>
      </span>
    </label>
  );
}
