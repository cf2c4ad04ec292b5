import { useRef } from 'preact/hooks';
import { accepted } from '../state/formats.ts';
import { setWatermark, watermark } from '../state/watermark.ts';
import { Check, NumberField, Select } from './fields.tsx';

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
        <label class="field">
          <span class="label">Watermark</span>
          <input
            ref={picker}
            type="file"
            accept={accepted.value}
            onChange={({ currentTarget }) => setWatermark(currentTarget.files?.[0])}
          />
        </label>
        {watermark.value && (
          <button type="button" class="button plain" onClick={remove}>
            Remove the watermark
          </button>
        )}
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
