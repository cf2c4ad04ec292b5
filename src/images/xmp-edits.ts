/**
 * @module Changes XMP in place, so that it does not state what is not true of a result: a gain map
 * that is gone (Adobe's gain map specification, 1.0; Google's Ultra HDR image format, 1.1), or the
 * size of a panorama (Google's Photo Sphere XMP metadata).
 */
import type { Scale } from './image-info.ts';
import { applyEdits, type Edit, type Range, scanMarkup, type Tag } from './svg/svg-markup.ts';

/** Namespaces that are changed. */
export const XMP_NAMESPACES = {
  gainMap: 'http://ns.adobe.com/hdr-gain-map/1.0/',
  container: 'http://ns.google.com/photos/1.0/container/',
  panorama: 'http://ns.google.com/photos/1.0/panorama/',
} as const;

/** Sides of a panorama in pixels, by their axis. Other properties are angles and counts. */
const SIDES = [
  ['x', /(Width|Left)(Pixels)?$/],
  ['y', /(Height|Top)(Pixels)?$/],
] as const;

/**
 * Maximum size of a packet in bytes, and maximum number of its tags. Real ones have a few
 * kilobytes, and fewer than a hundred tags.
 */
const MAX_BYTES = 256 * 1024;
const MAX_TAGS = 2000;

/** A property of a namespace as an attribute or an element. */
interface Property extends Range {
  readonly name: string;
  /** Range of the value, and what ends it: a quote or an end tag. */
  readonly value: Range;
}

/**
 * Removes the declaration of a gain map, and the list of the images behind the picture. Scales the
 * sizes of a panorama, or removes its description if its sizes cannot be scaled. The length stays:
 * what is removed becomes spaces.
 *
 * @param xmp a packet of one byte per character, after any header. It is changed.
 * @param scale factors by which the whole picture is resized; undefined if the results do not show
 *   all of it, or have several sizes
 */
export function correctXmp(xmp: Buffer, scale: Scale | undefined): void {
  const isConcerned = Object.values(XMP_NAMESPACES).some((namespace) => xmp.includes(namespace));
  if (!isConcerned || xmp.length > MAX_BYTES) return;
  const text = xmp.toString('latin1');
  const { tags } = scanMarkup(text);
  if (tags.length > MAX_TAGS) return;
  const gainMap = propertiesIn(text, tags, XMP_NAMESPACES.gainMap);
  const list = gainMap.length > 0 ? propertiesIn(text, tags, XMP_NAMESPACES.container) : [];
  const panorama = propertiesIn(text, tags, XMP_NAMESPACES.panorama);
  const directory = list.filter(({ name }) => name === 'Directory');
  const isWhole = scale?.x === 1 && scale.y === 1;
  const scaled = scale && panorama.flatMap((property) => scaleSide(text, property, scale) ?? []);
  const isScaled = scaled?.every(({ start, end, text: edited }) => edited.length === end - start);
  const removed = [...gainMap, ...directory, ...(isScaled ? [] : panorama)];
  const edits = [...removed.map(blank), ...(isScaled && !isWhole ? (scaled ?? []) : [])];
  if (edits.length > 0) xmp.write(applyEdits(text, withoutNested(edits)), 'latin1');
}

const blank = ({ start, end }: Property): Edit => ({ start, end, text: ' '.repeat(end - start) });

/** Leaves out edits inside of others. */
function withoutNested(edits: readonly Edit[]): Edit[] {
  let last = 0;
  return edits
    .toSorted((one, other) => one.start - other.start)
    .filter(({ start, end }) => {
      const isOutside = start >= last;
      last = Math.max(last, end);
      return isOutside;
    });
}

/** Returns the change of a side in pixels, which can be longer; undefined for others. */
function scaleSide(text: string, { name, value, end }: Property, scale: Scale): Edit | undefined {
  const [axis] = SIDES.find(([, pattern]) => pattern.test(name)) ?? [];
  const stated = text.slice(value.start, value.end).trim();
  if (!axis || !/^\d{1,9}$/.test(stated)) return undefined;
  const after = text.slice(value.end, end);
  const edited = `${Math.round(Number(stated) * scale[axis])}${after}`;
  return { start: value.start, end, text: edited.padEnd(end - value.start) };
}

function propertiesIn(text: string, tags: readonly Tag[], namespace: string): Property[] {
  const declared = tags.flatMap(({ attributes }) => attributes.filter(({ value }) => value === namespace));
  const prefixes = new Set(declared.map(({ name }) => name.replace('xmlns:', '')));
  if (prefixes.size === 0) return [];
  return tags.flatMap((tag, at): Property[] => {
    const attributes = tag.attributes.flatMap(({ name, start, end }): Property[] => {
      const [prefix = '', own] = name.split(':');
      if (!own || !prefixes.has(prefix)) return [];
      return [{ name: own, start: text.lastIndexOf(name, start), end: end + 1, value: { start, end } }];
    });
    if (!prefixes.has(tag.prefix) || tag.kind === 'close') return attributes;
    const close = tag.kind === 'open' ? endOf(tags, at) : undefined;
    const value = { start: tag.end, end: close?.start ?? tag.end };
    return [{ name: tag.name, start: tag.start, end: close?.end ?? tag.end, value }, ...attributes];
  });
}

/** Finds the next end tag of an element, which no other element of its name is in. */
const endOf = (tags: readonly Tag[], at: number): Tag | undefined =>
  tags.find(
    ({ kind, prefix, name }, index) =>
      index > at && kind === 'close' && prefix === tags[at]?.prefix && name === tags[at].name,
  );
