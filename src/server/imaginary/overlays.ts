/** @module The watermarks of imaginary: text, which becomes an SVG, and an image at a place. */
import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cleanText, escapeXml } from '../../base/text.ts';
import type { WatermarkFile } from '../../conversion/context.ts';
import { INPUT_FILE, type WatermarkPlace } from '../../conversion/plan/types.ts';
import { WATERMARK_FIELD } from '../receive/file-collector.ts';
import { type Fields, integer, invalid, isTrue, type Params, textOf, toHex } from './params.ts';

/** A watermark that an operation asks for. */
export interface RequestedWatermark {
  /** SVG of a text. Without it, the image is a part of the form. */
  readonly svg?: string;
  readonly place: WatermarkPlace;
  readonly fields: Fields;
}

/** Maximum length of a text, in characters. */
const MAX_TEXT_LENGTH = 500;
const MAX_DPI = 1200;
const POINTS_PER_INCH = 72;
/** A width of letters that few are below. */
const MIN_LETTER_EM = 0.3;

/** Returns the watermark of the operation `watermark`. The defaults are those of bimg. */
export function textWatermark(params: Params): RequestedWatermark {
  const text = cleanText(String(params.text ?? ''));
  if (text === '' || text.length > MAX_TEXT_LENGTH)
    throw invalid('text', text.slice(0, 80), `a text of 1 to ${MAX_TEXT_LENGTH} characters`);
  const dpi = integer(params, 'dpi') ?? 150;
  if (dpi > MAX_DPI) throw invalid('dpi', String(dpi), `a whole number from 1 to ${MAX_DPI}`);
  const colour = toHex(String(params.color || '255,255,255'));
  if (!/^#[0-9a-f]{6}$/i.test(colour)) throw invalid('color', colour, 'a colour such as 255,200,150');
  const { points, style } = readFont(String(params.font || 'sans 10'));
  const size = (points * dpi) / POINTS_PER_INCH;
  const lines = text.split('\n');
  const tspans = lines.map(
    (line, at) => `<tspan x="0.1em" dy="${at === 0 ? 1 : 1.2}em">${escapeXml(line)}</tspan>`,
  );
  // The width is that of the text. The invisible rectangle sets the height.
  const height = size * (1.2 * lines.length + 0.1);
  const rectangle = `<rect width="1" height="${height}" fill="none"/>`;
  return {
    svg: `<svg xmlns="http://www.w3.org/2000/svg">${rectangle}<text xml:space="preserve" font-size="${size}px" style="${style}" fill="${colour}">${tspans.join('')}</text></svg>`,
    place: {
      textWidth: integer(params, 'textwidth'),
      margin: integer(params, 'margin'),
      height,
      minWidth: size * MIN_LETTER_EM * Math.max(...lines.map((line) => line.length)),
    },
    fields: { ...opacityOf(params, 0.25), watermark_repeat: String(!isTrue(params, 'noreplicate')) },
  };
}

/** Returns the watermark of the operation `watermarkimage`. */
export function imageWatermark(params: Params): RequestedWatermark {
  if (params.image)
    throw invalid(
      'image',
      String(params.image),
      `the form part ${WATERMARK_FIELD}, since no address is fetched`,
    );
  return {
    place: { left: integer(params, 'left') ?? 0, top: integer(params, 'top') ?? 0 },
    fields: opacityOf(params, 1),
  };
}

/** Returns the field of the opacity. As in bimg, 0 stands for the default, more than 1 for 1. */
function opacityOf(params: Params, byDefault: number): Fields {
  const share = Number(params.opacity ?? 0);
  if (!(share >= 0)) throw invalid('opacity', textOf(params, 'opacity'), 'a number from 0 to 1');
  return { watermark_opacity: Math.max(1, Math.round(Math.min(1, share || byDefault) * 100)) };
}

/** Words of a font of Pango, and their CSS. */
const FONT_WORDS: Readonly<Record<string, string>> = {
  thin: 'font-weight:100',
  light: 'font-weight:300',
  medium: 'font-weight:500',
  semibold: 'font-weight:600',
  'semi-bold': 'font-weight:600',
  bold: 'font-weight:700',
  heavy: 'font-weight:900',
  black: 'font-weight:900',
  italic: 'font-style:italic',
  oblique: 'font-style:oblique',
  condensed: 'font-stretch:condensed',
  regular: '',
  normal: '',
  roman: '',
};
const FONT_EXPECTED = 'a family, style and size such as "sans bold 12"';
const MAX_POINTS = 1000;

/** Reads a font as Pango writes it: a family, words of the style, and a size in points. */
function readFont(font: string): { readonly points: number; readonly style: string } {
  const words = font.trim().split(/\s+/);
  const points = /^[\d.]+$/.test(words.at(-1) ?? '') ? Number(words.pop()) : 10;
  const styles: string[] = [];
  while (Object.hasOwn(FONT_WORDS, words.at(-1)?.toLowerCase() ?? ''))
    styles.push(FONT_WORDS[String(words.pop()).toLowerCase()] as string);
  const family = words.join(' ') || 'sans';
  if (!/^[\p{L}\p{N} ,._-]{1,100}$/u.test(family) || !(points > 0 && points <= MAX_POINTS))
    throw invalid('font', font, FONT_EXPECTED);
  // CSS has another name for Pango's "Sans".
  return { points, style: [`font-family:${family.replace(/^sans$/i, 'sans-serif')}`, ...styles].join(';') };
}

/**
 * Returns the file of a watermark.
 *
 * @param image the image of the form, if there is one
 * @param folder empty folder for the drawing of a text
 * @throws {ServiceError} FIELD_INVALID if the image is missing
 */
export async function toWatermarkFile(
  { svg, place }: RequestedWatermark,
  image: WatermarkFile | undefined,
  folder: string,
): Promise<WatermarkFile> {
  if (svg === undefined) {
    if (!image) throw invalid(WATERMARK_FIELD, '', `an image as the form part ${WATERMARK_FIELD}`);
    return { ...image, place };
  }
  const path = join(folder, INPUT_FILE);
  await writeFile(path, svg, { flag: 'wx' });
  return { path, type: 'svg', sha256: hash('sha256', svg), place };
}
