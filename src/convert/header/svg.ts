import type { Picture } from '../plan/types.ts';
import { atRoot } from '../sniff.ts';
import type { Bytes } from './bytes.ts';

const ROOT_BYTES = 64 * 1024;

/** Pixels a unit at 96 dots an inch (CSS Values 4, section 6); those that depend on a font, as most fonts have it. */
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  px: 1,
  in: 96,
  cm: 96 / 2.54,
  mm: 96 / 25.4,
  pt: 96 / 72,
  pc: 16,
  em: 16,
  rem: 16,
  ex: 8,
  ch: 8,
};

/** The size an SVG asks for by its root element; nothing when that says none, or says it in another way. */
export async function readSvg(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const [root = ''] = /^<[^>]*/.exec(atRoot(await bytes.at(0, ROOT_BYTES))) ?? [];
  const box =
    attribute(root, 'viewBox')
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? [];
  const width = length(attribute(root, 'width') ?? '100%', box[2]);
  const height = length(attribute(root, 'height') ?? '100%', box[3]);
  return { profile: 'none', metadata: [], ...(width && height && { width, height }) };
}

function attribute(tag: string, name: string): string | undefined {
  const match = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(tag);
  return match?.[1] ?? match?.[2];
}

/** A CSS length in pixels; a percentage is one of `whole`. */
function length(text: string, whole: number | undefined): number | undefined {
  const [, number, unit = ''] = /^\s*([+-]?[\d.]+(?:e[+-]?\d+)?)(%|[a-z]*)\s*$/i.exec(text) ?? [];
  const factor = unit === '%' ? (whole ?? Number.NaN) / 100 : UNITS[unit.toLowerCase()];
  const pixels = Number(number) * (factor ?? Number.NaN);
  return Number.isFinite(pixels) && pixels > 0 ? Math.ceil(pixels) : undefined;
}
