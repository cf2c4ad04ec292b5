import { NOTES } from '../../notes.ts';
import { convert } from '../actions/convert.ts';
import type { Preview } from '../client/preview.ts';
import { formatChange, formatSize, typeLabel } from '../format.ts';
import { compared, type Item, type Result, remove } from '../state/items.ts';
import { focusPicker } from './drop-zone.tsx';
import { Icon } from './icons.tsx';
import { ignoreDoubleClick } from './ignore-double-click.ts';
import { useFocusFallback } from './use-focus-fallback.ts';

/** Row of a file, with its preview, state and actions. */
export function FileRow({ item }: { item: Item }) {
  const { file, preview, state } = item;
  const row = useFocusFallback<HTMLLIElement>();
  const { value } = state;
  const result = value.at === 'done' ? value.result : undefined;
  return (
    <li ref={row} class={`file ${value.at}`} tabIndex={-1}>
      <Thumbnail src={preview.value?.thumbnail ?? result?.preview.value?.thumbnail} kind={typeLabel(file)} />
      <div class="file-text">
        <p class="file-name" title={file.name}>
          {file.name}
        </p>
        <p class="file-properties number">
          {typeLabel(file)} · {formatSize(file.size)}
          {preview.value && ` · ${pixels(preview.value)}`}
        </p>
      </div>
      <div class="file-state">
        <FileState item={item} />
      </div>
      <div class="file-actions">
        <Actions item={item} />
      </div>
      <button
        type="button"
        class="button bare file-remove"
        aria-label={`Remove ${file.name}`}
        onClick={({ currentTarget }) => {
          focusNeighbour(currentTarget);
          remove([item]);
        }}
      >
        <Icon name="remove" />
      </button>
      {result?.notes.map((note) => (
        <p key={note} class="file-note">
          {NOTES[note].page}
        </p>
      ))}
    </li>
  );
}

/** Focuses the same button of the next or previous row, or the file picker if there is none. */
function focusNeighbour(button: HTMLElement): void {
  const row = button.closest('li');
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  if (neighbour) neighbour.querySelector<HTMLElement>('.file-remove')?.focus();
  else focusPicker();
}

/** The thumbnail, or the type of the file if the browser cannot decode it. */
function Thumbnail({ src, kind }: { src: string | undefined; kind: string }) {
  return (
    <div class="thumbnail">{src ? <img src={src} alt="" /> : <span aria-hidden="true">{kind}</span>}</div>
  );
}

/** State, progress or result of a file. */
function FileState({ item: { file, state } }: { item: Item }) {
  const { value } = state;
  switch (value.at) {
    case 'ready':
      return <p class="quiet">Ready</p>;
    case 'waiting':
      return <p class="quiet">Waiting</p>;
    case 'uploading':
      return (
        <>
          <p class="quiet number">Uploading {Math.floor(value.share * 100)}%</p>
          <progress value={value.share} aria-label={`Upload of ${file.name}`} />
        </>
      );
    case 'converting':
      return (
        <>
          <p class="quiet">Converting</p>
          <progress aria-label={`Conversion of ${file.name}`} />
        </>
      );
    case 'failed':
      return <p class="error">{value.message}</p>;
    case 'done':
      return <ResultSizes file={file} result={value.result} />;
  }
}

/** Sizes of a file before and after its conversion. */
function ResultSizes({ file, result: { blob, name, preview } }: { file: File; result: Result }) {
  return (
    <>
      <p class="number outcome">
        <span class="visually-hidden">{name}: </span>
        <span class="quiet">{formatSize(file.size)}</span> <Icon name="arrow" />{' '}
        <strong>{formatSize(blob.size)}</strong>
      </p>
      <p class="number outcome">
        <span class={blob.size > file.size ? 'pill larger' : 'pill'}>
          {formatChange(file.size, blob.size)}
        </span>
        {preview.value && <span class="quiet">{pixels(preview.value)}</span>}
      </p>
    </>
  );
}

/** Buttons for the actions that a file's state allows. */
function Actions({ item }: { item: Item }) {
  const { file, state } = item;
  const { value } = state;
  switch (value.at) {
    case 'ready':
      return <Action label="Convert" of={file} onClick={() => convert([item])} />;
    case 'failed':
      return <Action label="Try again" icon="again" of={file} onClick={() => convert([item])} />;
    case 'done':
      return (
        <>
          <Action
            label="Compare"
            icon="compare"
            of={file}
            onClick={() => {
              compared.value = item;
            }}
          />
          <a
            class="button plain"
            href={value.result.url}
            download={value.result.name}
            aria-label={`Save ${value.result.name}`}
          >
            <Icon name="save" />
            Save
          </a>
        </>
      );
    default:
      return <Action label="Cancel" of={file} onClick={value.cancel} />;
  }
}

interface ActionProps {
  label: string;
  icon?: 'again' | 'compare';
  of: File;
  onClick: () => void;
}

/** A button that names its file for screen readers. */
function Action({ label, icon, of, onClick }: ActionProps) {
  return (
    <button
      type="button"
      class="button plain"
      aria-label={`${label} ${of.name}`}
      onClick={ignoreDoubleClick(onClick)}
    >
      {icon && <Icon name={icon} />}
      {label}
    </button>
  );
}

const pixels = ({ width, height }: Preview): string => `${width} × ${height}`;
