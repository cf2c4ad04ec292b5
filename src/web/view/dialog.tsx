/** @module What dialogs have in common. */
import type { ComponentChildren, DialogHTMLAttributes } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Result } from '../state/items.ts';
import { Button } from './elements.tsx';

interface DialogProps extends DialogHTMLAttributes {
  heading: string;
  /** What is between the heading and the button that closes the dialog. */
  tools?: ComponentChildren;
}

/** A modal dialog, which is open from the start. */
export function Dialog({ heading, tools, children, ...attributes }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the browser paints: a key that is pressed next must reach the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" {...attributes}>
      <div class="dialog-head">
        <h2 id="dialog-title">{heading}</h2>
        {tools}
        <Button look="bare" icon="remove" aria-label="Close" onClick={() => dialog.current?.close()} />
      </div>
      {children}
    </dialog>
  );
}

/** The pages of a PDF, which the browser shows. */
export const Pdf = ({ name, result }: { name: string; result: Result }) => (
  <iframe class="sheet" src={`${result.url}#navpanes=0`} title={`The PDF ${name}`} />
);

/** Returns an object URL of a blob while the component is mounted. */
export function useObjectUrl(blob: Blob): string {
  const url = useMemo(() => URL.createObjectURL(blob), [blob]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return url;
}
