import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** The `meta` box, which describes the items, comes first in the file; real ones have about 1 KiB. */
const META_BYTES = 64 * 1024;

/** How ISO/IEC 23000-22 marks an item that is another's transparency, and a colour box that holds an ICC profile. */
const MARKS = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'colrprof', 'colrrICC'];

/** Whether an AVIF has more to it than colour: transparency, or an ICC profile. */
export async function readAvif(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const start = await bytes.at(0, META_BYTES);
  return { alphaOrProfile: MARKS.some((mark) => start.includes(mark)) };
}
