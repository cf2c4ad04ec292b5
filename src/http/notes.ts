import type { Response } from 'express';
import type { Note } from '../convert/plan/types.ts';

/** `X-Conversion-Notes`: what a result lacks, as a list of tokens; absent when there is nothing to say. */

const HEADER = 'X-Conversion-Notes';
/** More numbers than this would make the header longer than some clients read. */
const MAX_FILE_NUMBERS = 100;

export function setNotes(res: Response, notes: readonly Note[]): void {
  if (notes.length > 0) res.setHeader(HEADER, notes.join(', '));
}

/**
 * The notes of several files: each token once, with the places, from 0, of the files it is about,
 * as a parameter (RFC 9651): `first-frame-only;files="0 3", alpha-flattened;files="1"`.
 */
export function setNotesOfMany(res: Response, notes: readonly (readonly Note[])[]): void {
  const places = new Map<Note, number[]>();
  for (const [place, tokens] of notes.entries()) {
    for (const token of tokens) places.set(token, [...(places.get(token) ?? []), place]);
  }
  const items = [...places].map(([token, files]) =>
    files.length > MAX_FILE_NUMBERS ? token : `${token};files="${files.join(' ')}"`,
  );
  if (items.length > 0) res.setHeader(HEADER, items.join(', '));
}
