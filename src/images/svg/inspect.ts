/** @module Reads the size of an SVG from its root element, and finds unsupported features. */
import type { WindowReader } from '../containers/file.ts';
import { type ImageFacts, RGB_PIXELS, type Size } from '../image-info.ts';
import { COLOUR_FUNCTIONS, parseDeclarations, toRgb } from './css.ts';
import { parseViewBox, positiveSize, skipXmlPreamble } from './markup.ts';

const ROOT_BYTES = 64 * 1024;

/** Pixels per absolute unit at 96 pixels per inch (CSS Values 4, section 6.2). */
const ABSOLUTE_UNITS: Readonly<Record<string, number>> = {
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
/** Initial font size of librsvg in pixels. CSS has 16. */
const FONT_SIZE = 12;

/**
 * Markup of style sheets. They are not found in UTF-16, or after the first {@link ROOT_BYTES}. In these cases, the
 * calculated size can be wrong.
 */
const STYLE_SHEETS = ['<style', ':style', '<?xml-stylesheet'];

/** Features that browsers render and librsvg ignores. `var()`, colours and origins were resolved as far as possible. */
const UNSUPPORTED_FEATURES = [
  ...['<foreignObject', ':foreignObject', '<textPath', ':textPath', 'textLength=', 'pathLength='],
  ...['@import', 'calc(', 'transform-origin'],
  ...['circle(', 'ellipse(', 'polygon(', 'inset(', 'path('].flatMap((shape) =>
    [':', ': ', '="'].map((before) => `clip-path${before}${shape}`),
  ),
  ...['var', ...COLOUR_FUNCTIONS].map((name) => `${name}(`),
];
/** Overlap of windows in bytes: at least the length of the longest feature. */
const OVERLAP = 32;

/** Length in pixels, NaN if only librsvg can calculate it, or `auto` if the view box or the other side defines it. */
type Length = number | 'auto';

/**
 * Reads the size of an SVG from its root element, as librsvg calculates it, in pixels and fractions. The size is
 * undefined if it depends on the elements of the drawing.
 */
export async function readSvg(bytes: WindowReader): Promise<ImageFacts<'svg'>> {
  const head = await bytes.read(0, ROOT_BYTES);
  const [root = ''] = /^<[^>]*/.exec(skipXmlPreamble(head)) ?? [];
  return {
    profile: 'none',
    metadata: [],
    pixels: { ...RGB_PIXELS, alpha: true },
    ...sizeOf(root),
    ...canvasColourOf(root),
    ...((await hasAny(bytes, UNSUPPORTED_FEATURES)) && { hasUnsupportedFeatures: true }),
    ...(STYLE_SHEETS.some((start) => head.includes(start)) && { styled: true }),
  };
}

/** Maximum number of tokens of the root element's `style`, in which real files have few. */
const MAX_STYLE_TOKENS = 4096;
/** Maximum length of a colour, and maximum number of backgrounds to read. */
const MAX_COLOUR_LENGTH = 64;
const MAX_BACKGROUNDS = 8;
const IMPORTANT = /\s*!\s*important$/;
/** Backgrounds that are no colour, in browsers of today. Others may be unknown, so that an earlier one counts. */
const NO_COLOUR = /url\(|gradient\(|^(?:none|initial|inherit|unset|revert)/;

/** Reads the background of the root element's `style`, which browsers paint below the drawing. The last valid one counts. */
function canvasColourOf(root: string): Pick<ImageFacts<'svg'>, 'canvasColour'> {
  const values = parseDeclarations(attribute(root, 'style') ?? '', { tokens: MAX_STYLE_TOKENS })
    .filter(({ name }) => ['background', 'background-color'].includes(name.toLowerCase()))
    .map(({ value }) => value.toLowerCase())
    .slice(-MAX_BACKGROUNDS)
    .reverse();
  const isImportant = (value: string): boolean => value.length <= MAX_COLOUR_LENGTH && IMPORTANT.test(value);
  for (const value of [...values.filter(isImportant), ...values.filter((value) => !isImportant(value))]) {
    if (value.length > MAX_COLOUR_LENGTH || NO_COLOUR.test(value)) return {};
    const canvasColour = toRgb(value.replace(IMPORTANT, ''));
    if (canvasColour) return { canvasColour };
  }
  return {};
}

async function hasAny(bytes: WindowReader, texts: readonly string[]): Promise<boolean> {
  for (let offset = 0; ; offset += ROOT_BYTES - OVERLAP) {
    const part = await bytes.read(offset, ROOT_BYTES);
    if (texts.some((text) => part.includes(text))) return true;
    if (part.length < ROOT_BYTES) return false;
  }
}

/** Calculates the size. A percentage counts as `auto`, because there is no container. */
function sizeOf(root: string): Size | undefined {
  const width = sideOf(root, 'width');
  const height = sideOf(root, 'height');
  const box = parseViewBox(attribute(root, 'viewBox'));
  if (width !== 'auto' && height !== 'auto') return positiveSize({ width, height });
  if (!box) return undefined;
  if (width !== 'auto') return positiveSize({ width, height: (width * box.height) / box.width });
  if (height !== 'auto') return positiveSize({ width: (height * box.width) / box.height, height });
  return box;
}

/**
 * Reads a side. The `style` attribute takes precedence over the presentation attribute. Invalid lengths are ignored.
 */
function sideOf(root: string, name: string): Length {
  return property(root, name, fontSizeOf(root)) ?? 'auto';
}

function fontSizeOf(root: string): number {
  const fontSize = property(root, 'font-size', Number.NaN);
  if (fontSize === undefined && !root.includes('font-size')) return FONT_SIZE;
  return typeof fontSize === 'number' ? fontSize : Number.NaN; // a keyword, or relative to an unknown size
}

function property(root: string, name: string, fontSize: number): Length | undefined {
  const values = [declaration(attribute(root, 'style') ?? '', name), attribute(root, name)];
  return values.map((text) => length(text, fontSize)).find((value) => value !== undefined);
}

function attribute(tag: string, name: string): string | undefined {
  const match = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(tag);
  return match?.[1] ?? match?.[2];
}

function declaration(style: string, name: string): string | undefined {
  const declarations = style.split(';').map((text) => text.split(':'));
  return declarations.findLast(([property]) => property?.trim() === name)?.[1]?.replace('!important', '');
}

/** @returns undefined for an invalid length: a negative number or an unknown unit */
function length(text: string | undefined, fontSize: number): Length | undefined {
  if (text === undefined) return undefined;
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
