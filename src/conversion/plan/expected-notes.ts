/** @module Notes that are known before a conversion runs. Pure. */
import { convertsColour } from './colour.ts';
import { keepsAllFrames, selectedPages } from './selection.ts';
import type { Note, PlanContext } from './types.ts';

const NOTE_RULES: readonly { readonly note: Note; readonly applies: (job: PlanContext) => boolean }[] = [
  {
    note: 'first-frame-only',
    applies: (job) =>
      job.image.hasIgnoredFrames === true || (job.image.animation !== undefined && !keepsAllFrames(job)),
  },
  { note: 'first-page-only', applies: (job) => selectedPages(job).length < (job.image.pages?.length ?? 0) },
  { note: 'truncated-input', applies: ({ image }) => image.truncated === true },
  { note: 'colour-converted-to-srgb', applies: convertsColour },
  { note: 'svg-features-ignored', applies: ({ image }) => image.hasUnsupportedFeatures === true },
];

/** Returns the notes that apply to a conversion, in a fixed order. */
export function expectedNotes(job: PlanContext): Note[] {
  return NOTE_RULES.filter(({ applies }) => applies(job)).map(({ note }) => note);
}
