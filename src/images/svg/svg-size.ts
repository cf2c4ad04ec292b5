/**
 * @module The size of an SVG as its root element states it, in pixels and fractions, as librsvg
 * calculates it. Runs in Node.js and in browsers.
 */
import type { Size } from '../../tables/fitting.ts';

/** What a root element states. Lengths are by precedence. */
export interface RootLengths {
  readonly widths: readonly string[];
  readonly heights: readonly string[];
  readonly fontSize: string;
  readonly viewBox: string | undefined;
}

/** Pixels per absolute unit at 96 pixels per inch (CSS Values 4, section 6.2). */
export const ABSOLUTE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  px: 1,
  in: 96,
  cm: 96 / 2.54,
  mm: 96 / 25.4,
  pt: 96 / 72,
  pc: 16,
};
/** Font sizes per relative unit. `ch` depends on the version of librsvg. */
const FONT_UNITS: Readonly<Record<string, number>> = { em: 1, ex: 0.5, ch: Number.NaN };

/** Length in pixels; NaN if only librsvg knows it; `auto` from the view box or the other side. */
type Length = number | 'auto';

/**
 * Calculates the size; undefined if it depends on the drawing. A percentage counts as `auto`,
 * because there is no container.
 */
export function statedSize({ widths, heights, fontSize, viewBox }: RootLengths): Size | undefined {
  const stated = parseLength(fontSize, Number.NaN);
  // The size of a font is unknown for a keyword, and a relative or unknown value.
  const fontPixels = typeof stated === 'number' ? stated : Number.NaN;
  const [width, height] = [widths, heights].map((values) => sideOf(values, fontPixels)) as [Length, Length];
  const box = parseViewBox(viewBox);
  if (width !== 'auto' && height !== 'auto') return positiveSize({ width, height });
  if (!box) return undefined;
  if (width !== 'auto') return positiveSize({ width, height: (width * box.height) / box.width });
  if (height !== 'auto') return positiveSize({ width: (height * box.width) / box.height, height });
  return box;
}

/** Returns the first valid length. */
const sideOf = (values: readonly string[], fontSize: number): Length =>
  values.map((text) => parseLength(text, fontSize)).find((value) => value !== undefined) ?? 'auto';

/** @returns undefined for an invalid length: a negative number or an unknown unit */
function parseLength(text: string, fontSize: number): Length | undefined {
  if (text.includes('&')) return Number.NaN; // an entity
  if (text.trim() === 'auto') return 'auto';
  const [, number, unit = ''] = /^\s*\+?([\d.]+(?:e[+-]?\d+)?)(%|[a-z]*)\s*$/i.exec(text) ?? [];
  if (number === undefined) return undefined;
  if (unit === '%') return 'auto';
  const name = unit.toLowerCase();
  const fontSizes = FONT_UNITS[name];
  const pixels = fontSizes === undefined ? ABSOLUTE_UNITS[name] : fontSizes * fontSize;
  return pixels === undefined ? undefined : Number(number) * pixels;
}

function positiveSize(size: Size): Size | undefined {
  return size.width > 0 && size.height > 0 && Number.isFinite(size.width * size.height) ? size : undefined;
}

function parseViewBox(value: string | undefined): Size | undefined {
  const numbers = (value?.trim().split(/[\s,]+/) ?? []).map(Number);
  const [width = 0, height = 0] = numbers.slice(2);
  return numbers.length === 4 && numbers.every(Number.isFinite) ? positiveSize({ width, height }) : undefined;
}
