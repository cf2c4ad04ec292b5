import { OUTPUTS, type OutputType } from '../../formats.ts';
import { NOTES } from '../../notes.ts';
import { formatBytes } from '../../text.ts';
import { convert } from '../actions/convert.ts';
import type { Preview } from '../client/preview.ts';
import { formatChange, typeLabel } from '../format.ts';
import { formats } from '../state/formats.ts';
import { compared, type Item, isStale, type Result, remove, stateOf } from '../state/items.ts';
import { options } from '../state/options.ts';
import { focusPicker } from './drop-zone.tsx';
import { Icon } from './icons.tsx';
import { ignoreDoubleClick } from './ignore-double-click.ts';
import { useFocusFallback } from './use-focus-fallback.ts';

/** Row of a file, with its preview, state and actions. */
export function FileRow({ item }: { item: Item }) {
  const { file, path, preview } = item;
  const row = useFocusFallback<HTMLLIElement>();
  const state = stateOf(item);
  const result = state.at === 'done' ? state.result : undefined;
  const isFinal = state.at === 'failed' && !state.canRetry;
  return (
    <li ref={row} class={`file ${state.at}`} tabIndex={-1}>
      <Thumbnail src={preview.value?.thumbnail ?? result?.preview.value?.thumbnail} kind={typeLabel(file)} />
      <div class="file-text">
        <p class="file-name" title={path}>
          {path !== file.name && <span class="quiet">{path.slice(0, -file.name.length)}</span>}
          {file.name}
        </p>
        <p class="file-properties number">
          {typeLabel(file)} {formatBytes(file.size)}
          {result ? (
            <Outcome before={file.size} result={result} />
          ) : (
            preview.value && ` · ${formatPixels(preview.value)}`
          )}
        </p>
        <FileState item={item} />
      </div>
      <FormatField item={item} />
      <div class="file-actions">
        <Actions item={item} />
      </div>
      <button
        type="button"
        class={isFinal ? 'button plain file-remove' : 'button bare file-remove'}
        aria-label={`Remove ${file.name}`}
        onClick={({ currentTarget }) => removeRow(currentTarget, item)}
      >
        {isFinal ? 'Remove' : <Icon name="remove" />}
      </button>
    </li>
  );
}

/** Removes a row, and focuses the same button of the next or previous one, or the file picker if there is none. */
function removeRow(button: HTMLElement, item: Item): void {
  const row = button.closest('li');
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  if (neighbour) neighbour.querySelector<HTMLElement>('.file-remove')?.focus();
  else focusPicker();
  remove([item]);
}

/** The thumbnail, or the type of the file if the browser cannot decode it. */
function Thumbnail({ src, kind }: { src: string | undefined; kind: string }) {
  return (
    <div class="thumbnail">{src ? <img src={src} alt="" /> : <span aria-hidden="true">{kind}</span>}</div>
  );
}

/** Format, size and saving of a result, after those of the original. */
function Outcome({ before, result: { blob, label, preview } }: { before: number; result: Result }) {
  return (
    <>
      {' → '}
      <strong>
        {label} {formatBytes(blob.size)}
      </strong>{' '}
      <span class={blob.size > before ? 'pill larger' : 'pill'}>{formatChange(before, blob.size)}</span>{' '}
      {preview.value && <span class="pixels">{formatPixels(preview.value)}</span>}
    </>
  );
}

/** Progress of a file, the reason why it failed, and what to know about its result. */
function FileState({ item }: { item: Item }) {
  const state = stateOf(item);
  switch (state.at) {
    case 'ready':
      return <p class="file-state">Ready</p>;
    case 'waiting':
      return <p class="file-state">Waiting</p>;
    case 'uploading':
      return (
        <p class="file-state number">
          Uploading {Math.floor(state.share * 100)} %
          <progress value={state.share} aria-label={`Upload of ${item.file.name}`} />
        </p>
      );
    case 'converting':
      return (
        <p class="file-state">
          Converting
          <progress aria-label={`Conversion of ${item.file.name}`} />
        </p>
      );
    case 'failed':
      return <p class="file-state error">{state.message}</p>;
    case 'done':
      return (
        <>
          {isStale(item) && <p class="file-state stale">Converted with other options.</p>}
          {state.result.notes.map((note) => (
            <p key={note} class={NOTES[note].loss ? 'file-state loss' : 'file-state note'}>
              {NOTES[note].page}
            </p>
          ))}
        </>
      );
  }
}

/** Selects the format of a single file. By default, it is the one of all files. */
function FormatField({ item: { file, format } }: { item: Item }) {
  const label = `Format of ${file.name}`;
  return (
    <select
      class="file-format"
      aria-label={label}
      value={format.value ?? ''}
      onChange={({ currentTarget }) => {
        format.value = (currentTarget.value || undefined) as OutputType | undefined;
      }}
    >
      <option value="">→ {OUTPUTS[options.value.format].label}</option>
      {formats.value?.output.map((type) => (
        <option key={type} value={type}>
          {OUTPUTS[type].label}
        </option>
      ))}
    </select>
  );
}

/** Buttons for the actions that a file's state allows. */
function Actions({ item }: { item: Item }) {
  const { file } = item;
  const state = stateOf(item);
  switch (state.at) {
    case 'ready':
      return <Action label="Convert" of={file} onClick={() => convert([item])} />;
    case 'failed':
      return state.canRetry ? (
        <Action label="Try again" icon="again" of={file} onClick={() => convert([item])} />
      ) : null;
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
            href={state.result.url}
            download={state.result.name}
            aria-label={`Save ${state.result.name}`}
          >
            <Icon name="save" />
            Save
          </a>
        </>
      );
    default:
      return <Action label="Cancel" of={file} onClick={state.cancel} />;
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

const formatPixels = ({ width, height }: Preview): string => `${width} × ${height}`;
