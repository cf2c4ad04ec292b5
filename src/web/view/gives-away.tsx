import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { Revealed, RevealedKind } from '../../client/library/index.ts';
import { describeFailure } from '../actions/convert-files.ts';
import { reveal, thumbnailBlob } from '../actions/reveal.ts';
import type { Item } from '../state/items.ts';
import { KIND_LABELS } from '../state/removed.ts';
import { revealing } from '../state/rows.ts';
import { Dialog, useObjectUrl } from './dialog.tsx';

/** The dialog about the metadata of a file, if it is open. */
export const OpenGivesAway = () =>
  revealing.value && <GivesAway key={revealing.value.id} item={revealing.value} />;

/** Dialog that lists what the metadata of a file gives away. The server reads it on demand. */
function GivesAway({ item }: { item: Item }) {
  const { file } = item;
  const found = useSignal<Revealed | undefined>(undefined);
  const problem = useSignal('');
  useEffect(() => {
    const controller = new AbortController();
    reveal(file, controller.signal).then(
      (revealed) => {
        found.value = revealed;
      },
      async (error) => {
        if (!controller.signal.aborted) problem.value = (await describeFailure(error, file)).message;
      },
    );
    return () => controller.abort();
  }, [file, found, problem]);
  return (
    <Dialog
      class="gives-away"
      heading={`What ${file.name} gives away`}
      onClose={() => {
        revealing.value = undefined;
      }}
    >
      {found.value ? (
        <Values of={found.value} />
      ) : (
        <p role="status" class={problem.value ? 'error' : 'quiet'}>
          {problem.value || 'Reading…'}
        </p>
      )}
    </Dialog>
  );
}

function Values({ of: { values, thumbnail, complete } }: { of: Revealed }) {
  const groups = [...Map.groupBy(values, ({ kind }) => kind)];
  const isEmpty = groups.length === 0 && !thumbnail;
  return (
    <>
      {isEmpty && complete && <p>Found no place, time, camera, owner or thumbnail.</p>}
      <dl>
        {groups.map(([kind, own]) => (
          <Group key={kind} kind={kind}>
            {own.map(({ source, name, value }) => (
              <dd key={`${source} ${name} ${value}`}>
                {value} <span class="quiet">{name}</span>
              </dd>
            ))}
          </Group>
        ))}
        {thumbnail && (
          <Group kind="thumbnail">
            <dd>
              <Thumbnail of={thumbnail} /> It can show what was cropped.
            </dd>
          </Group>
        )}
      </dl>
      {!complete && (
        <p class="quiet">
          {isEmpty ? 'The metadata was not read.' : 'There is more, or a part could not be read.'}
        </p>
      )}
    </>
  );
}

const Group = ({ kind, children }: { kind: RevealedKind; children: ComponentChildren }) => (
  <div>
    <dt>{KIND_LABELS[kind]}</dt>
    {children}
  </div>
);

function Thumbnail({ of: thumbnail }: { of: NonNullable<Revealed['thumbnail']> }) {
  const url = useObjectUrl(useMemo(() => thumbnailBlob(thumbnail), [thumbnail]));
  return <img src={url} alt="The embedded thumbnail" />;
}
