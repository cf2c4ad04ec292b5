import { INPUTS } from '../../tables/formats.ts';
import { millions } from '../format.ts';
import { addFiles, dragged, formatSkipped, skipped } from '../state/add-files.ts';
import { accepted, formats } from '../state/formats.ts';
import { items, removal, undoRemoval } from '../state/items.ts';
import { Icon, Millstone } from './elements.tsx';
import { ignoreDoubleClick, useFocusFallback } from './events.ts';

/** Whether the page is used by touch: nothing can be dropped, and no picker has folders. */
const IS_TOUCH = matchMedia('(pointer: coarse)').matches;

/** Shows where to drop files, which works on the whole page, and pickers for files and folders. */
export function DropZone() {
  const isEmpty = items.value.length === 0;
  const section = useFocusFallback<HTMLElement>();
  return (
    <section ref={section} class={dragged.value ? 'drop over' : 'drop'} aria-label="Add files" tabIndex={-1}>
      <div class="drop-text">
        {!IS_TOUCH && <h2>{dragged.value ? 'Drop to add files' : 'Drop images here'}</h2>}
        <p>
          {!IS_TOUCH && 'Or paste one, or choose them. '}
          {isEmpty && 'Converted on this server, stored nowhere.'}
        </p>
      </div>
      <div class="drop-pickers">
        <Picker label={IS_TOUCH ? 'Choose images' : 'Choose files'} icon="add" isMain={isEmpty} />
        {!IS_TOUCH && <Picker label="Choose a folder" icon="folder" folder />}
        {isEmpty && <Removal />}
      </div>
      <Skipped />
      {isEmpty && <Mill />}
      {isEmpty && <Accepted />}
    </section>
  );
}

/** A picture of what happens: the millstone makes a small photo of a large one. */
const Mill = () => (
  <div class="mill" aria-hidden="true">
    <Photo />
    <Millstone turning={dragged.value} />
    <Photo />
  </div>
);

const Photo = () => (
  <svg viewBox="0 0 48 36" aria-hidden="true">
    <rect x="0.5" y="0.5" width="47" height="35" rx="4" />
    <circle cx="35" cy="11" r="4" />
    <path d="M4 32 17 14l9 12 6-7 12 13z" />
  </svg>
);

/** Number of skipped files up to which their names are visible at first. */
const MAX_OPEN_NAMES = 5;

/** The names of the files that were skipped, by reason. */
const Skipped = () =>
  [...skipped.value].map(([reason, paths]) => (
    <details key={reason} class="skipped" open={paths.length <= MAX_OPEN_NAMES}>
      <summary>{formatSkipped(reason, paths)}</summary>
      <ul>
        {paths.map((path) => (
          <li key={path}>{path}</li>
        ))}
      </ul>
    </details>
  ));

interface PickerProps {
  label: string;
  icon: 'add' | 'folder';
  folder?: boolean;
  isMain?: boolean;
}

/** A file input that looks like a button. The input is visually hidden, but focusable. */
function Picker({ label, icon, folder = false, isMain = false }: PickerProps) {
  return (
    <label class={isMain ? 'button picker' : 'button plain picker'}>
      <input
        class="visually-hidden"
        type="file"
        multiple
        accept={folder ? '' : accepted.value}
        {...(folder && { webkitdirectory: true })}
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          currentTarget.value = ''; // lets the user pick the same files again
          if (files.length > 0) addFiles(files);
        }}
      />
      <Icon name={icon} />
      {label}
    </label>
  );
}

/** Focuses the file picker, for use when the focused element is removed with the list. */
export function focusPicker(): void {
  document.querySelector<HTMLElement>('.picker input')?.focus();
}

/** The formats that the server reads, and its limits. */
function Accepted() {
  if (!formats.value) return null;
  const { input, limits } = formats.value;
  const types = Object.values(INPUTS).filter(({ names }) => names.some((name) => input.includes(name)));
  return (
    <p class="kinds">
      {types.map(({ label }) => label).join(', ')}; up to {millions(limits.max_file_bytes)} MB and{' '}
      {millions(limits.max_pixels)} megapixels
    </p>
  );
}

/** The last removal, with a button that undoes it. */
export function Removal() {
  if (!removal.value) return null;
  return (
    <span class="removal">
      {removal.value.message} ·{' '}
      <button type="button" class="link" onClick={ignoreDoubleClick(undoRemoval)}>
        Undo
      </button>
    </span>
  );
}
