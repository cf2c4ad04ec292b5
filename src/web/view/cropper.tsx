import { useSignal } from '@preact/signals';
import { useContext, useRef } from 'preact/hooks';
import type { Size } from '../../tables/fitting.ts';
import { type Area, formatCrop, parseCrop } from '../state/crop.ts';
import { fitRatio, type Handle, moveArea, moveHandle } from '../state/crop-frame.ts';
import type { Options } from '../state/options.ts';
import { isSideways, toTransform, turnedSize } from '../state/turns.ts';
import { useObjectUrl } from './dialog.tsx';
import { Button, Entries, Labelled } from './elements.tsx';
import { FieldChoices } from './fields.tsx';

/** The handles, with the sides that they move. */
const HANDLES: readonly (readonly [string, Handle])[] = [
  ['Top left corner', { across: -1, down: -1 }],
  ['Top edge', { across: 0, down: -1 }],
  ['Top right corner', { across: 1, down: -1 }],
  ['Right edge', { across: 1, down: 0 }],
  ['Bottom right corner', { across: 1, down: 1 }],
  ['Bottom edge', { across: 0, down: 1 }],
  ['Bottom left corner', { across: -1, down: 1 }],
  ['Left edge', { across: -1, down: 0 }],
];
/** Resizes by its numbers: the left upper corner stays. */
const CORNER: Handle = { across: 1, down: 1 };

/** Directions of the arrow keys. */
const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
/** Pixels by which an arrow key moves with Shift. */
const LARGE_STEP = 10;

/** Ratios of width to height by their labels, besides that of the picture. */
const RATIOS = { '1:1': 1, '4:3': 4 / 3, '3:4': 3 / 4, '16:9': 16 / 9, '9:16': 9 / 16 };
/** Label of any ratio. */
const FREE = 'Free';

type Move = (x: number, y: number) => Area;

/** Selects the part of a picture to which it is cropped, by pointer, keys and numbers. */
export function Cropper({ file, size }: { file: File; size: Size }) {
  const { all, set } = useContext(FieldChoices);
  const src = useObjectUrl(file);
  const options = all();
  const whole = turnedSize(size, options);
  /** The area while a pointer changes it. */
  const draft = useSignal<Area | undefined>(undefined);
  const area = draft.value ?? parseCrop(options.crop, whole);
  const ratios: Readonly<Record<string, number | undefined>> = {
    [FREE]: undefined,
    Original: whole.width / whole.height,
    ...RATIOS,
  };
  const ratio = useSignal(FREE);
  const change = (changed: Area): void => set({ crop: formatCrop(changed, whole) });
  const resize =
    (handle: Handle): Move =>
    (x, y) =>
      moveHandle(area, handle, [x, y], whole, ratios[ratio.value]);
  const move: Move = (x, y) => moveArea(area, x, y, whole);
  return (
    <>
      <div class="viewer">
        <div class="stage cropping">
          <div class="cropper" style={{ '--ratio': whole.width / whole.height }}>
            <Original src={src} size={size} options={{ ...options, crop: '' }} />
            <Frame area={area} draft={draft} whole={whole} move={move} resize={resize} change={change} />
          </div>
        </div>
      </div>
      <section class="compare-foot crop" aria-label="Crop">
        <Labelled label="Ratio">
          <select
            value={ratio.value}
            onChange={({ currentTarget: { value } }) => {
              ratio.value = value;
              const chosen = ratios[value];
              if (chosen) change(fitRatio(area, chosen));
            }}
          >
            <Entries of={Object.keys(ratios).map((label) => [label, label])} />
          </select>
        </Labelled>
        <Pixels label="Left" value={area.left} onChange={(left) => change(move(left - area.left, 0))} />
        <Pixels label="Top" value={area.top} onChange={(top) => change(move(0, top - area.top))} />
        <Pixels
          label="Width"
          value={area.width}
          onChange={(width) => change(resize(CORNER)(width - area.width, 0))}
        />
        <Pixels
          label="Height"
          value={area.height}
          onChange={(height) => change(resize(CORNER)(0, height - area.height))}
        />
        <Button
          disabled={options.crop === ''}
          onClick={() => {
            ratio.value = FREE;
            set({ crop: '' });
          }}
        >
          Whole picture
        </Button>
      </section>
      <p class="visually-hidden" id="crop-hint">
        The arrow keys move it by 1 pixel, with Shift by {LARGE_STEP}.
      </p>
      <p class="visually-hidden" role="status">
        {draft.value ? '' : describe(area)}
      </p>
    </>
  );
}

const describe = ({ left, top, width, height }: Area): string =>
  `${width} × ${height} pixels, ${left} from the left, ${top} from the top`;

const percent = (part: number, all: number): string => `${(100 * part) / all}%`;

const toStyle = ({ left, top, width, height }: Area, whole: Size) => ({
  left: percent(left, whole.width),
  top: percent(top, whole.height),
  width: percent(width, whole.width),
  height: percent(height, whole.height),
});

/** Returns the cursor with the arrows of a compass. */
const toCursor = ({ across, down }: Handle): string =>
  `${['n', '', 's'][down + 1]}${['w', '', 'e'][across + 1]}-resize`;

interface FrameProps extends Omit<GripProps, 'class' | 'label' | 'style'> {
  readonly area: Area;
  /** Returns how a handle moves its sides. */
  readonly resize: (handle: Handle) => Move;
}

/** The frame around the selected part, and its handles. */
function Frame({ area, resize, ...grip }: FrameProps) {
  return (
    <div class="frame" style={toStyle(area, grip.whole)}>
      <Grip {...grip} class="mover" label="Selected part" />
      {HANDLES.map(([label, handle]) => (
        <Grip
          key={label}
          {...grip}
          class="handle"
          label={label}
          style={{
            left: `${50 + 50 * handle.across}%`,
            top: `${50 + 50 * handle.down}%`,
            cursor: toCursor(handle),
          }}
          move={resize(handle)}
        />
      ))}
    </div>
  );
}

interface GripProps {
  readonly class: string;
  readonly label: string;
  readonly style?: Readonly<Record<string, string>>;
  readonly draft: { value: Area | undefined };
  readonly whole: Size;
  /** Returns the area after a move by pixels of the picture. */
  readonly move: Move;
  readonly change: (area: Area) => void;
}

/** What a pointer drags and arrow keys move: the frame, or a handle of it. */
function Grip({ class: name, label, style = {}, draft, whole, move, change }: GripProps) {
  /** What a pointer that is down moves, from where, and picture pixels per page pixel. */
  const drag = useRef<{ x: number; y: number; scale: number; move: Move } | undefined>(undefined);
  return (
    <button
      type="button"
      class={name}
      style={style}
      aria-label={label}
      aria-describedby="crop-hint"
      onKeyDown={(event) => {
        const arrow = ARROWS[event.key];
        if (!arrow || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        const [x, y] = arrow.map((step) => step * (event.shiftKey ? LARGE_STEP : 1)) as [number, number];
        change(move(x, y));
      }}
      onPointerDown={({ currentTarget, pointerId, clientX: x, clientY: y }) => {
        currentTarget.setPointerCapture(pointerId);
        const { width } = (currentTarget.closest('.cropper') as Element).getBoundingClientRect();
        drag.current = { x, y, scale: whole.width / width, move };
      }}
      onPointerMove={({ clientX, clientY }) => {
        if (!drag.current) return;
        const { x, y, scale, move: moveFromStart } = drag.current;
        draft.value = moveFromStart(Math.round((clientX - x) * scale), Math.round((clientY - y) * scale));
      }}
      onLostPointerCapture={() => {
        drag.current = undefined;
        if (draft.value) change(draft.value);
        draft.value = undefined;
      }}
    />
  );
}

interface PixelsProps {
  label: string;
  value: number;
  onChange: (to: number) => void;
}

/** A number of pixels, which changes with Enter, the arrow keys or when the focus leaves it. */
const Pixels = ({ label, value, onChange }: PixelsProps) => (
  <Labelled label={label}>
    <span class="with-unit">
      <input
        type="number"
        inputMode="numeric"
        min={0}
        value={value}
        onChange={({ currentTarget }) => {
          if (currentTarget.validity.valid && currentTarget.value !== '')
            onChange(currentTarget.valueAsNumber);
          // A value beyond the picture becomes the nearest one, which may be the one before.
          currentTarget.value = String(value);
        }}
      />
      <span aria-hidden="true">px</span>
    </span>
  </Labelled>
);

interface OriginalProps {
  readonly src: string;
  /** Size in pixels. Without it, the image is stretched over the element. */
  readonly size: Size | undefined;
  /** The options that rotate, flip and crop it. */
  readonly options: Options;
}

/** An image as the options turn and crop it, in an element of any size. */
export function Original({ src, size, options }: OriginalProps) {
  const { width, height } = size ?? { width: 1, height: 1 };
  const turned = turnedSize({ width, height }, options);
  const area = parseCrop(size ? options.crop : '', turned);
  return (
    <div class="before">
      <img
        src={src}
        alt="The original"
        draggable={false}
        style={{
          // The image is turned around its centre after it was scaled. So a side has the unit of
          // the direction that it gets.
          ...(isSideways(options)
            ? { width: `${(100 * width) / area.height}cqh`, height: `${(100 * height) / area.width}cqw` }
            : { width: `${(100 * width) / area.width}cqw`, height: `${(100 * height) / area.height}cqh` }),
          left: `${(100 * (turned.width / 2 - area.left)) / area.width}%`,
          top: `${(100 * (turned.height / 2 - area.top)) / area.height}%`,
          transform: `translate(-50%, -50%) ${toTransform(options)}`,
        }}
      />
    </div>
  );
}
