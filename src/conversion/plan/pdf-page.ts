import { fittings } from './size.ts';
import type { PlanContext } from './types.ts';

/** How large the pages of a PDF are. Pure. */

/** Points a side of a page that all viewers can open (ISO 32000-1, annex C.2). */
export const MAX_PAGE_POINTS = 14_400;

/** The points of a pixel: 1, or less if the largest page would have a side that is too long. The pixels stay. */
export function pageScale(job: Pick<PlanContext, 'image' | 'options'>): number {
  const sides = fittings(job).flatMap(({ result }) => [result.width, result.height]);
  return Math.min(1, MAX_PAGE_POINTS / Math.max(1, ...sides));
}
