/** @module The size of the pages of a PDF. Pure. */
import { fittings } from './size.ts';
import type { PlanContext } from './types.ts';

/** Maximum width and height of a page in points that all viewers can open (ISO 32000-1, annex C.2). */
export const MAX_PAGE_POINTS = 14_400;

/** Returns points per pixel: 1, or less if the largest page would exceed the maximum. The number of pixels stays. */
export function pageScale(job: Pick<PlanContext, 'image' | 'options'>): number {
  const sides = fittings(job).flatMap(({ result }) => [result.width, result.height]);
  return Math.min(1, MAX_PAGE_POINTS / Math.max(1, ...sides));
}
