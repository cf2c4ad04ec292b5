import { useEffect, useRef } from 'preact/hooks';
import { forgetArchives, type Part, packing, parts } from '../client/archive.ts';
import { plural } from '../format.ts';
import { Icon } from './icons.tsx';

/** The archives that are being made, or were; a browser that saved only the first of them has the others here. */
export function Archives() {
  const box = useRef<HTMLElement>(null);
  const there = parts.value.length > 0;
  // Below a long list nobody would see them.
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [there]);
  if (!there) return null;
  return (
    <section ref={box} class="archives" aria-label="ZIP archives">
      <ul>
        {parts.value.map((part) => (
          <li key={part.name} class="archive">
            <span class="archive-name">
              {part.name} <small>{plural(part.files.length, 'file')}</small>
            </span>
            <ArchiveState part={part} />
          </li>
        ))}
      </ul>
      <button type="button" class="button plain" onClick={dismiss}>
        {packing.value ? 'Cancel' : 'Dismiss'}
      </button>
    </section>
  );
}

/** The focus goes to the bar that the archives were asked of. */
function dismiss(): void {
  forgetArchives();
  document.querySelector<HTMLElement>('.action-bar')?.focus({ preventScroll: true });
}

const WORDS = { waiting: 'Waiting', uploading: 'Uploading', converting: 'Converting' };

function ArchiveState({ part: { at, name, message, share, url } }: { part: Part }) {
  if (at === 'failed') return <span class="trouble">{message}</span>;
  if (at === 'done') {
    return (
      <a class="button plain" href={url} download={name} aria-label={`Save ${name}`}>
        <Icon name="save" />
        Save
      </a>
    );
  }
  return (
    <span class="archive-progress">
      <span class="quiet">{WORDS[at]}</span>
      <progress {...(at === 'uploading' && { value: share })} aria-label={`Making ${name}`} />
    </span>
  );
}
