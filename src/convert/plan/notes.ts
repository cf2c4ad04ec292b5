import { convertsColour } from './colour.ts';
import type { Job, Note } from './types.ts';
import { allFrames, wantedPages } from './wanted.ts';

/** What a result will lack, as far as that is known before anything runs. Pure. */

const REASONS: readonly { readonly note: Note; readonly applies: (job: Job) => boolean }[] = [
  {
    note: 'first-frame-only',
    applies: (job) =>
      job.picture.framesUnread === true || (job.picture.animation !== undefined && !allFrames(job)),
  },
  { note: 'first-page-only', applies: (job) => wantedPages(job).length < (job.picture.pages?.length ?? 0) },
  { note: 'colour-converted-to-srgb', applies: convertsColour },
];

export function notesOf(job: Job): Note[] {
  return REASONS.filter(({ applies }) => applies(job)).map(({ note }) => note);
}
