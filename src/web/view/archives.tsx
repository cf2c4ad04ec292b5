import { useEffect, useRef } from 'preact/hooks';
import { plural } from '../../text.ts';
import { forgetArchives, type Part, packing, parts } from '../actions/archive.ts';
import { Icon } from './icons.tsx';

/** Lists the archives with links, since some browsers save only the first of several downloads. */
export function Archives() {
  const section = useRef<HTMLElement>(null);
  const visible = parts.value.length > 0;
  // Archives below a long list are out of view.
  useEffect(() => section.current?.scrollIntoView({ block: 'nearest' }), [visible]);
  if (!visible) return null;
  return (
    <section ref={section} class="archives" aria-label="ZIP archives">
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

/** Removes the archives and focuses the action bar. */
function dismiss(): void {
  forgetArchives();
  document.querySelector<HTMLElement>('.action-bar')?.focus({ preventScroll: true });
}

const LABELS = { waiting: 'Waiting', uploading: 'Uploading', converting: 'Converting' };

/** Progress, error or link of an archive. */
function ArchiveState({ part: { at, name, message, share, url } }: { part: Part }) {
  if (at === 'failed') return <span class="error">{message}</span>;
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
      <span class="quiet">{LABELS[at]}</span>
      <progress {...(at === 'uploading' && { value: share })} aria-label={`Creating ${name}`} />
    </span>
  );
}
