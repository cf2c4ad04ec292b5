import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { formatBytes } from '../../text.ts';
import { isArchive, isPdf } from '../actions/convert.ts';
import { followed, followOptions } from '../actions/follow-options.ts';
import { formatChange, typeLabel } from '../format.ts';
import { compared, type Item } from '../state/items.ts';
import { options } from '../state/options.ts';
import { ComparedImages } from './compared-images.tsx';
import { QualityField } from './fields.tsx';
import { Icon } from './icons.tsx';

/** Dialog that compares a file with its result, which follows the quality slider. */
export function Compare({ item }: { item: Item }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { file, format, preview, state } = item;
  const result = state.value.at === 'done' ? state.value.result : undefined;
  // Before the browser paints: a key that is pressed next must reach the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => followOptions(item), [item]);
  return (
    <dialog
      ref={dialog}
      class="compare"
      aria-labelledby="compare-title"
      onClose={() => {
        compared.value = undefined;
      }}
    >
      <div class="compare-head">
        <h2 id="compare-title">{result?.name ?? file.name}</h2>
        {result && (
          <a class="button" href={result.url} download={result.name}>
            <Icon name="save" />
            Save
          </a>
        )}
        <button type="button" class="button bare" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="remove" />
        </button>
      </div>
      {result && isPdf(result.blob) ? (
        <iframe class="sheet" src={`${result.url}#navpanes=0`} title={`The PDF ${result.name}`} />
      ) : (
        <ComparedImages
          file={file}
          isReadable={Boolean(preview.value?.thumbnail)}
          result={result && !isArchive(result.blob) ? result.url : undefined}
          labels={[
            `Original · ${typeLabel(file)} ${formatBytes(file.size)}`,
            `Result · ${result ? `${result.label} ${formatBytes(result.blob.size)}` : 'converting'}`,
          ]}
        />
      )}
      <div class="compare-foot">
        <QualityField format={format.value ?? options.value.format} />
        <output class={followed.value.message ? 'error' : 'number'}>
          {followed.value.message ||
            (followed.value.busy
              ? 'Converting'
              : result && `${formatBytes(result.blob.size)} ${formatChange(file.size, result.blob.size)}`)}
        </output>
      </div>
    </dialog>
  );
}
