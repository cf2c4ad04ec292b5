/** @module The bar and the dialog of the one file that all files become. */
import type { ComponentChildren } from 'preact';
import { formatBytes, plural } from '../../base/text.ts';
import { NOTES } from '../../tables/notes.ts';
import { isPdf } from '../actions/convert-files.ts';
import {
  type Combination,
  combinable,
  combination,
  combined,
  nameOfCombined,
  plan,
  previewed,
} from '../state/combination.ts';
import { formatLabel } from '../state/options.ts';
import { clear } from './action-bar.tsx';
import { Dialog, Pdf } from './dialog.tsx';
import { Removal } from './drop-zone.tsx';
import { Button } from './elements.tsx';
import { ignoreDoubleClick, useFocusFallback } from './events.ts';
import { SaveLink } from './file-actions.tsx';
import { FORM_ID } from './options-form.tsx';

/** Progress, result and actions of the one file. */
export function CombinationBar() {
  const bar = useFocusFallback<HTMLElement>();
  const state = combination.value;
  const cancel = 'cancel' in state ? state.cancel : undefined;
  const result = combined.value;
  const isCurrent = state.at === 'done' && state.key === plan.value.key;
  return (
    <section ref={bar} class="action-bar" aria-label="All files" tabIndex={-1}>
      <div class={isCurrent ? 'totals finished' : 'totals'}>
        <Progress />
        {result && !isCurrent && (
          <p class="file-state stale">The files, their order or the options have changed.</p>
        )}
        <Removal />
      </div>
      <div class="actions">
        {cancel && (
          <Button class="button plain cancel" onClick={cancel}>
            Cancel
          </Button>
        )}
        <Button disabled={cancel !== undefined} onClick={ignoreDoubleClick(clear)}>
          Clear list
        </Button>
        {result && (
          <>
            <Button
              onClick={() => {
                previewed.value = true;
              }}
            >
              Preview
            </Button>
            <SaveLink name={nameOfCombined(result)} result={result} isListed={!isCurrent} />
          </>
        )}
        {!isCurrent && !cancel && (
          <Button look="main" type="submit" form={FORM_ID} disabled={combinable.value.length === 0}>
            Make one {formatLabel}
          </Button>
        )}
      </div>
    </section>
  );
}

/** What happens to the one file, or what it is. */
function Progress() {
  const state = combination.value;
  switch (state.at) {
    case 'ready':
      return <Line>{plural(combinable.value.length, 'file')}</Line>;
    case 'waiting':
      return <Line>Waiting</Line>;
    case 'preparing':
      return (
        <Line value={state.prepared / state.count}>
          Prepared {state.prepared} of {plural(state.count, 'file')}
        </Line>
      );
    case 'uploading':
      return <Line value={state.share}>Uploading {Math.floor(state.share * 100)}%</Line>;
    case 'converting':
      return <Line value={undefined}>Converting</Line>;
    case 'failed':
      return <p class="error">{state.message}</p>;
    case 'done':
      return <Made result={state.result} />;
  }
}

/** A line of text, below a progress bar if there is a value from 0 to 1. */
const Line = ({ children, ...progress }: { children: ComponentChildren; value?: number | undefined }) => (
  <>
    {'value' in progress && <progress class="share" max={1} value={progress.value} aria-label="One file" />}
    <p class="number">
      <strong>{children}</strong>
    </p>
  </>
);

/** Name, pages and size of the one file, and what to know about many of its files. */
const Made = ({ result }: { result: Combination }) => (
  <>
    <p class="number">
      <strong>{nameOfCombined(result)}</strong> · {result.pages} · {formatBytes(result.blob.size)}
    </p>
    {result.notes.map((note) => (
      <p key={note} class="file-state note">
        {NOTES[note].page}
      </p>
    ))}
  </>
);

/** Dialog that shows the one file. */
export function CombinationPreview({ result }: { result: Combination }) {
  const name = nameOfCombined(result);
  const preview = result.preview.value;
  const isUnreadable = preview !== undefined && !preview?.thumbnail;
  return (
    <Dialog
      class="compare"
      heading={name}
      tools={<SaveLink name={name} result={result} />}
      onClose={() => {
        previewed.value = false;
      }}
    >
      {isPdf(result.blob) ? (
        <Pdf name={name} result={result} />
      ) : (
        <div class="sheet stage">
          {isUnreadable ? (
            <p class="quiet">This browser cannot show the file.</p>
          ) : (
            <img class="after" src={result.url} alt="The result" />
          )}
        </div>
      )}
      <p class="compare-foot number">
        {result.pages} · {formatBytes(result.blob.size)}
      </p>
    </Dialog>
  );
}
