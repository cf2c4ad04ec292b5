/** @module The size of results. */
import { useSignal } from '@preact/signals';
import { useContext, useLayoutEffect } from 'preact/hooks';
import { hasBox, isExact, isSet, options, setOptions, unset } from '../state/options.ts';
import { Entries, Labelled, Segments } from './elements.tsx';
import { FieldChoices, NumberField, Select } from './fields.tsx';

/** Longest sides to choose from, in pixels. */
const SIDES = ['2560', '1920', '1280', '800'];
/** The options that state the size. */
const SIZE = ['width', 'height', 'scale'] as const;

/** The size of results: that of the original, a longest side, or what the fields below state. */
export function SizeChoice() {
  const { preset, width, height, scale, fit, enlarge } = options.value;
  const isOwn = useSignal(false);
  const first = preset === '' ? 'Original' : 'Preset';
  const isFirst = preset === '' ? !(width || height || scale) : !SIZE.some(isSet);
  const isSide = width === height && SIDES.includes(width) && fit === 'inside' && !enlarge;
  const stated = isFirst ? first : isSide ? width : 'Own';
  const chosen = isOwn.value ? 'Own' : stated;
  // The fields stay while one of them is empty.
  useLayoutEffect(() => {
    if (stated === 'Own') isOwn.value = true;
  }, [stated]);
  const choose = (to: string): void => {
    isOwn.value = to === 'Own';
    if (isOwn.value) return;
    if (to === 'Preset') for (const name of SIZE) unset(name);
    else {
      const side = to === first ? '' : to;
      const box = { width: side, height: side, scale: '' };
      setOptions(preset === '' ? { ...box, fit: 'inside', enlarge: false } : box);
    }
  };
  return (
    <>
      <fieldset>
        <legend>Size</legend>
        <Segments name="size" values={[first, ...SIDES, 'Own']} chosen={chosen} onChoose={choose} />
      </fieldset>
      {chosen === 'Own' ? (
        <>
          <SizeFields isLabelled={false} />
          <Select name="fit" disabled={!hasBox(options.value)} hint="Needs a width and a height." />
        </>
      ) : (
        isSide && <small class="hint">Longest side in pixels. Smaller images keep their size.</small>
      )}
    </>
  );
}

/** Ways to state the size of results. */
const UNITS = { pixels: 'In pixels', percent: 'In percent', double: '2×, for drawings' } as const;
type Unit = keyof typeof UNITS;
/** Scale of the last way, in percent. */
const DOUBLE = '200';
/** Scale at first in percent. */
const FIRST_PERCENT = '50';

/** The size of results: maximum sides, or a scale. Without label below one that says the same. */
export function SizeFields({ isLabelled = true }) {
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
      <Labelled label={isLabelled && 'Size'}>
        <select
          name="unit"
          aria-label="Size"
          value={unit}
          onChange={({ currentTarget }) => choose(currentTarget.value as Unit)}
        >
          <Entries of={Object.entries(UNITS)} />
        </select>
      </Labelled>
      {unit === 'pixels' && (
        <div class="sides">
          <NumberField name="width" label={isExact(options) ? 'Width' : undefined} />
          <NumberField name="height" label={isExact(options) ? 'Height' : undefined} />
        </div>
      )}
      {unit === 'percent' && <NumberField name="scale" fallback={100} />}
    </>
  );
}
