/** @module Pages of a PDF: their size, and the place of the picture on each. Pure. */
import type { Area, Scale, Size } from '../../images/image-info.ts';
import { parseMillimetres } from '../../tables/options.ts';
import type { PageOptions } from './types.ts';

/** Points per inch (ISO 32000-1, 8.3.2.3). */
export const POINTS_PER_INCH = 72;
const POINTS_PER_MILLIMETRE = POINTS_PER_INCH / 25.4;

/** Maximum sides of a page in points that all viewers can open (ISO 32000-1, annex C.2). */
export const MAX_PAGE_POINTS = 14_400;

/** Sides of paper in millimetres (ISO 216, and ANSI/ASME Y14.1 for `letter`). */
const PAPER: Readonly<Record<string, readonly [width: number, height: number]>> = {
  a3: [297, 420],
  a4: [210, 297],
  a5: [148, 210],
  letter: [215.9, 279.4],
  legal: [215.9, 355.6],
};

/** Returns the sides of the paper that `page_size` names, in millimetres; undefined for `image`. */
export const paperSides = (size: string) => PAPER[size] ?? parseMillimetres(size);

/** A page in points, and the place of the picture on it, from the top left corner. */
export interface PageLayout {
  readonly page: Size;
  readonly picture: Area;
}

/** Resolution of a picture that states none: one point for each pixel. */
const POINT_PER_PIXEL: Scale = { x: POINTS_PER_INCH, y: POINTS_PER_INCH };

/**
 * Lays out a page for a picture in pixels, of a resolution in pixels per inch. By default, it has
 * the size of the picture and margins, and is scaled if a side is too long. On paper, it is
 * centred, as large as the margins permit.
 */
export function layOutPage(
  picture: Size,
  resolution: Scale = POINT_PER_PIXEL,
  { pageSize = 'image', pageMargin = 0, pageOrientation = 'auto' }: PageOptions,
): PageLayout {
  const width = (picture.width * POINTS_PER_INCH) / resolution.x;
  const height = (picture.height * POINTS_PER_INCH) / resolution.y;
  const margin = pageMargin * POINTS_PER_MILLIMETRE;
  const isLandscape = pageOrientation === 'auto' ? width > height : pageOrientation === 'landscape';
  const sides = paperSides(pageSize)?.map((side) => side * POINTS_PER_MILLIMETRE);
  const [short, long] = [Math.min(...(sides ?? [])), Math.max(...(sides ?? []))];
  const paper = sides && (isLandscape ? { width: long, height: short } : { width: short, height: long });
  const most = paper ?? { width: MAX_PAGE_POINTS, height: MAX_PAGE_POINTS };
  const scale = Math.min(
    paper ? Number.POSITIVE_INFINITY : 1,
    (most.width - 2 * margin) / width,
    (most.height - 2 * margin) / height,
  );
  const shown = { width: width * scale, height: height * scale };
  const page = paper ?? { width: shown.width + 2 * margin, height: shown.height + 2 * margin };
  const offset = { x: (page.width - shown.width) / 2, y: (page.height - shown.height) / 2 };
  return { page, picture: { ...offset, ...shown } };
}

/** Returns whether the picture does not fill the page, so that what is cut off would show. */
export const hasSpace = ({ pageSize = 'image', pageMargin = 0 }: Partial<PageOptions>): boolean =>
  pageSize !== 'image' || pageMargin > 0;
