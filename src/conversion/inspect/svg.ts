import { skipXmlPreamble } from '../input/detect.ts';
import type { ImageInfo, Size } from '../plan/types.ts';
import type { WindowReader } from './window-reader.ts';

const ROOT_BYTES = 64 * 1024;

/** Pixels in an absolute unit at 96 dots an inch (CSS Values 4, section 6.2). */
const ABSOLUTE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  px: 1,
  in: 96,
  cm: 96 / 2.54,
  mm: 96 / 25.4,
  pt: 96 / 72,
  pc: 16,
};
/** Font sizes in a unit. What `ch` is depends on the version of librsvg. */
const FONT_UNITS: Readonly<Record<string, number>> = { em: 1, ex: 0.5, ch: Number.NaN };
/** The initial font size of librsvg, in pixels; CSS has 16. */
const FONT_SIZE = 12;

/** In UTF-16 they are not found, as little as one that stands further behind: then the size may be wrong. */
const STYLE_SHEETS = ['<style', ':style', '<?xml-stylesheet'];

/** In pixels, not a number when only the tool can tell; 'auto' takes the size from elsewhere. */
type Length = number | 'auto';

/**
 * The size that an SVG asks for by its root element, as librsvg computes it, in pixels with their fractions; and whether
 * there is a style sheet, which may ask for another one. There is no size when only the elements of the drawing tell it.
 */
export async function readSvg(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const head = await bytes.read(0, ROOT_BYTES);
  const [root = ''] = /^<[^>]*/.exec(skipXmlPreamble(head)) ?? [];
  return {
    profile: 'none',
    metadata: [],
    ...sizeOf(root),
    ...(STYLE_SHEETS.some((start) => head.includes(start)) && { styled: true }),
  };
}

/** A side in percent counts as one that is not given, since there is nothing that it could be a part of. */
function sizeOf(root: string): Size | undefined {
  const width = sideOf(root, 'width');
  const height = sideOf(root, 'height');
  const box = viewBoxOf(root);
  if (width !== 'auto' && height !== 'auto') return sound({ width, height });
  if (!box) return undefined;
  if (width !== 'auto') return sound({ width, height: (width * box.height) / box.width });
  if (height !== 'auto') return sound({ width: (height * box.width) / box.height, height });
  return box;
}

function sound(size: Size): Size | undefined {
  return size.width > 0 && size.height > 0 && Number.isFinite(size.width * size.height) ? size : undefined;
}

function viewBoxOf(root: string): Size | undefined {
  const numbers = attribute(root, 'viewBox')
    ?.trim()
    .split(/[\s,]+/)
    .map(Number);
  const [x, y, width, height] = numbers?.length === 4 ? (numbers as [number, number, number, number]) : [];
  return Number.isFinite(x) && Number.isFinite(y)
    ? sound({ width: width as number, height: height as number })
    : undefined;
}

/** CSS in the `style` attribute is stronger than an attribute. What is no length is passed over. */
function sideOf(root: string, name: string): Length {
  return property(root, name, fontSizeOf(root)) ?? 'auto';
}

function fontSizeOf(root: string): number {
  const fontSize = property(root, 'font-size', Number.NaN);
  if (fontSize === undefined && !root.includes('font-size')) return FONT_SIZE;
  return typeof fontSize === 'number' ? fontSize : Number.NaN; // a word, or relative to what is not known
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

/** @returns undefined for what is no length: negative numbers, unknown units */
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
