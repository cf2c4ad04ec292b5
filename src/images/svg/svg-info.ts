/** @module Reads the size of an SVG from its root element, and finds unsupported features. */
import type { WindowReader } from '../containers/file.ts';
import { type ImageFacts, RGB_PIXELS, type Size } from '../image-info.ts';
import { type CssBudget, type Declaration, parseDeclarations, toRgb } from './css.ts';
import { hasNew, hasUnresolved, MAX_FOUND, PAIRS } from './features.ts';
import { attributeOf, skipXmlPreamble } from './svg-markup.ts';
import { statedSize } from './svg-size.ts';

const ROOT_BYTES = 64 * 1024;
/** Initial font size of librsvg. CSS has 16 pixels, which `rewrite.ts` writes into the root. */
const FONT_SIZE = '12px';

/**
 * Markup of style sheets. They are not found in UTF-16, or after the first {@link ROOT_BYTES}. In
 * these cases, the calculated size can be wrong.
 */
const STYLE_SHEETS = ['<style', ':style', '<?xml-stylesheet'];

/**
 * Reads the size of an SVG from its root element, as librsvg calculates it, in pixels and
 * fractions. The size is undefined if it depends on the elements of the drawing.
 */
export async function readSvg(bytes: WindowReader): Promise<ImageFacts> {
  const head = Buffer.from(await bytes.read(0, ROOT_BYTES));
  const [tag = ''] = /^<[^>]*/.exec(skipXmlPreamble(head)) ?? [];
  const budget = { tokens: MAX_STYLE_TOKENS };
  const root = readRoot(tag, budget);
  return {
    profile: 'none',
    metadata: [],
    pixels: { ...RGB_PIXELS, alpha: true },
    ...(budget.tokens > 0 && sizeOfRoot(root)),
    ...canvasColourOf(root.style),
    ...(await findFeatures(bytes)),
    hasLongText: await isLong(bytes, head),
    styled: STYLE_SHEETS.some((start) => head.includes(start)),
  };
}

/** Minimum bytes of a text that librsvg refuses by default (libxml2's `XML_MAX_TEXT_LENGTH`). */
const LONG_BYTES = 10_000_000;

/** Entities could grow without the limit. */
const isLong = async (bytes: WindowReader, head: Buffer): Promise<boolean> =>
  !head.includes('<!ENTITY') && (await bytes.read(LONG_BYTES, 1)).length > 0;

/** The start tag of the root element, and the declarations of its `style`. */
interface Root {
  readonly tag: string;
  readonly style: readonly Declaration[];
}

/** Maximum number of tokens of the root element's `style`, in which real files have few. */
const MAX_STYLE_TOKENS = 4096;
/** Maximum length of a colour or a side, and maximum number of backgrounds to read. */
const MAX_VALUE_LENGTH = 64;
const MAX_BACKGROUNDS = 8;
const IMPORTANT = /\s*!\s*important$/i;
/** Backgrounds that are no colour. Others may be unknown, so that an earlier one counts. */
const NO_COLOUR = /url\(|gradient\(|^(?:none|initial|inherit|unset|revert)/;

/** Returns values by precedence: `!important` ones, without this word, first; the last first. */
function byPrecedence(values: readonly string[]): string[] {
  const isImportant = (value: string): boolean => value.length <= MAX_VALUE_LENGTH && IMPORTANT.test(value);
  const lastFirst = values.toReversed();
  return [
    ...lastFirst.filter(isImportant).map((value) => value.replace(IMPORTANT, '')),
    ...lastFirst.filter((value) => !isImportant(value)),
  ];
}

/** Reads the last valid background of the root's `style`, painted below the drawing. */
function canvasColourOf(style: readonly Declaration[]): ImageFacts {
  const values = style
    .filter(({ name }) => ['background', 'background-color'].includes(name.toLowerCase()))
    .map(({ value }) => value.toLowerCase())
    .slice(-MAX_BACKGROUNDS);
  for (const value of byPrecedence(values)) {
    if (value.length > MAX_VALUE_LENGTH || NO_COLOUR.test(value)) return {};
    const canvasColour = toRgb(value);
    if (canvasColour) return { canvasColour };
  }
  return {};
}

async function* partsOf(bytes: WindowReader): AsyncGenerator<string> {
  for (let offset = 0; ; offset += ROOT_BYTES - MAX_FOUND) {
    const part = (await bytes.read(offset, ROOT_BYTES)).toString('latin1');
    yield part;
    if (part.length < ROOT_BYTES) return;
  }
}

async function findFeatures(bytes: WindowReader): Promise<ImageFacts> {
  let found: ImageFacts = {};
  const halves = new Set<RegExp>();
  for await (const part of partsOf(bytes)) {
    if (hasUnresolved(part)) return { hasUnsupportedFeatures: true };
    if (hasNew(part)) found = { hasNewFeatures: true };
    for (const [first, second] of PAIRS) if (first.test(part)) halves.add(second);
  }
  // The second half can precede the first one.
  if (halves.size === 0) return found;
  for await (const part of partsOf(bytes)) {
    for (const half of halves) if (half.test(part)) return { hasUnsupportedFeatures: true };
  }
  return found;
}

const readRoot = (tag: string, budget: CssBudget): Root => {
  return { tag, style: parseDeclarations(attributeOf(tag, 'style') ?? '', budget) };
};

const sizeOfRoot = (root: Root): Size | undefined =>
  statedSize({
    widths: valuesOf(root, 'width'),
    heights: valuesOf(root, 'height'),
    fontSize: valuesOf(root, 'font-size')[0] ?? FONT_SIZE,
    viewBox: attributeOf(root.tag, 'viewBox'),
  });

/** Calculates the size that a root tag states; undefined if it depends on the drawing. */
export const sizeOf = (tag: string, budget: CssBudget): Size | undefined => sizeOfRoot(readRoot(tag, budget));

/**
 * Returns the values of a property by precedence: those of the `style` attribute, and then the
 * presentation attribute. librsvg finds names in lower case only.
 */
function valuesOf({ tag, style }: Root, name: string): string[] {
  const declared = style.filter((one) => one.name === name).map(({ value }) => value);
  const presented = attributeOf(tag, name);
  return [...byPrecedence(declared), ...(presented === undefined ? [] : [presented])];
}
