/** @module The elements that all parts of the page share. */
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';

/** Angles of the millstone's furrows, in degrees. */
const FURROW_ANGLES = [0, 60, 120, 180, 240, 300];

/** The logo, a millstone. It turns while files are converted. */
export function Millstone({ turning }: { turning: boolean }) {
  return (
    <svg class={turning ? 'millstone turning' : 'millstone'} viewBox="0 0 32 32" aria-hidden="true">
      <circle class="stone" cx="16" cy="16" r="15" />
      {FURROW_ANGLES.map((angle) => (
        <path
          key={angle}
          class="furrow"
          d="M16 11.5C15 8 15.5 6 18.5 4"
          transform={`rotate(${angle} 16 16)`}
        />
      ))}
      <circle class="eye" cx="16" cy="16" r="3" />
    </svg>
  );
}

const PATHS = {
  add: 'M8 3v10M3 8h10',
  remove: 'M4 4l8 8M12 4l-8 8',
  save: 'M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10',
  compare: 'M8 2v12M2.5 4.5H6v7H2.5zM10 4.5h3.5v7H10',
  folder: 'M2 12.5v-9h4l1.5 1.8H14v7.2z',
  left: 'M3.2 6A5 5 0 1 1 3 9M3 3v3.2h3.2',
  right: 'M12.8 6A5 5 0 1 0 13 9M13 3v3.2H9.8',
  again: 'M3 8.5a5 5 0 0 1 8.6-3.6L13.5 7M13.5 3.5V7H10M13 9.5a5 5 0 0 1-8.6 2M2.5 13v-3H6',
  more: 'M2.5 8a.5.5 0 1 1 1 0 .5.5 0 1 1-1 0zM7.5 8a.5.5 0 1 1 1 0 .5.5 0 1 1-1 0zM12.5 8a.5.5 0 1 1 1 0 .5.5 0 1 1-1 0z',
  note: 'M8 7.5v4M8 4.7v.01M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z',
  warning: 'M8 6.5v3M8 11.7v.01M8 2 14.5 13.5h-13z',
  share: 'M8 10V2.5M5 5l3-3 3 3M3.5 8v5.5h9V8',
  back: 'M10 3.5 5.5 8l4.5 4.5',
  horizontal: 'M8 2v12M5.5 4.5v7h-4zM10.5 4.5v7h4z',
  vertical: 'M2 8h12M4.5 5.5h7v-4zM4.5 10.5h7v4z',
  crop: 'M4.5 1.5v10h10M1.5 4.5h10v10',
  expand: 'M6 3.5 10.5 8 6 12.5',
  grip: 'M3 5h10M3 8h10M3 11h10',
  up: 'M8 13V3M4 7l4-4 4 4',
  down: 'M8 3v10M4 9l4 4 4-4',
};

export type IconName = keyof typeof PATHS;

/** An icon. Decorative: its button has a text or a label. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface ButtonProps extends ButtonHTMLAttributes {
  look?: 'main' | 'plain' | 'plain square' | 'bare';
  icon?: IconName | undefined;
}

/** A button, which submits no form by default, with an icon before its text. */
export const Button = ({ look = 'plain', icon, children, ...attributes }: ButtonProps) => (
  <button type="button" class={`button ${look}`} {...attributes}>
    {icon && <Icon name={icon} />}
    {children}
  </button>
);

interface LabelledProps {
  label: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

/** A control below its label. */
export const Labelled = ({ label, class: name = '', children }: LabelledProps) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is one of the children
  <label class={`field ${name}`.trim()}>
    {label && <span class="label">{label}</span>}
    {children}
  </label>
);

interface SegmentsProps<T extends string> {
  name: string;
  values: readonly T[];
  /** Labels by value. By default, the values. */
  labels?: (value: T) => string;
  chosen: T;
  onChoose: (value: T) => void;
}

/** Radio buttons that look like one bar. */
export const Segments = <T extends string>(props: SegmentsProps<T>) => (
  <div class="segments">
    {props.values.map((value) => (
      <label key={value} class="segment">
        <input
          type="radio"
          name={props.name}
          value={value}
          checked={value === props.chosen}
          onChange={() => props.onChoose(value)}
        />
        <span>{props.labels?.(value) ?? value}</span>
      </label>
    ))}
  </div>
);

/** The entries of a list of choices: the value and the label of each. */
export const Entries = ({ of: entries }: { of: readonly (readonly [string | number, string])[] }) =>
  entries.map(([value, label]) => (
    <option key={value} value={value}>
      {label}
    </option>
  ));
