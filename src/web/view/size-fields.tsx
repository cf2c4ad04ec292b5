import { useSignal } from '@preact/signals';
import { useContext } from 'preact/hooks';
import { isExact } from '../state/options.ts';
import { FieldChoices, NumberField } from './fields.tsx';

/** Ways to state the size of results. */
const UNITS = { pixels: 'In pixels', percent: 'In percent', double: '2×, for drawings' } as const;
type Unit = keyof typeof UNITS;
/** Scale of the last way, in percent. */
const DOUBLE = '200';
/** Scale at first in percent. */
const FIRST_PERCENT = '50';

/** The size of results: at most a width and a height, or a scale. */
export function SizeFields() {
  const { all, set } = useContext(FieldChoices);
  const options = all();
  const { scale } = options;
  /** The way that was chosen last. It decides while the field of the scale is empty. */
  const chosen = useSignal<Unit>('pixels');
  const isDouble = scale === DOUBLE && chosen.value !== 'percent';
  const scaled = isDouble ? 'double' : 'percent';
  const unit: Unit = scale !== '' || chosen.value === 'percent' ? scaled : 'pixels';
  const choose = (to: Unit): void => {
    chosen.value = to;
    const scales = { pixels: '', percent: FIRST_PERCENT, double: DOUBLE };
    set({ scale: scales[to], ...(to !== 'pixels' && { width: '', height: '' }) });
  };
  return (
    <>
      <label class="field">
        <span class="label">Size</span>
        <select
          name="unit"
          value={unit}
          onChange={({ currentTarget }) => choose(currentTarget.value as Unit)}
        >
          {Object.entries(UNITS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {unit === 'pixels' && (
        <div class="sides">
          <NumberField name="width" {...(isExact(options) && { label: 'Width' })} />
          <NumberField name="height" {...(isExact(options) && { label: 'Height' })} />
        </div>
      )}
      {unit === 'percent' && <NumberField name="scale" fallback={100} />}
    </>
  );
}
