/** @module Reads the copyright of XMP, and writes XMP with nothing else (ISO 16684-1). */
import { isUtf8 } from 'node:buffer';
import { cleanText, escapeXml } from '../../base/text.ts';
import { decodeEntities, scanMarkup, type Tag } from '../svg/svg-markup.ts';
import { type FieldText, MAX_TEXT_BYTES, XMP_FIELDS } from './fields.ts';

/** Namespaces by their prefix in the names below. */
const NAMESPACES: Readonly<Record<string, string>> = {
  rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
  dc: 'http://purl.org/dc/elements/1.1/',
  photoshop: 'http://ns.adobe.com/photoshop/1.0/',
  xmpRights: 'http://ns.adobe.com/xap/1.0/rights/',
};
/** Namespaces that are only read. */
const READ_NAMESPACES: Readonly<Record<string, string>> = {
  ...NAMESPACES,
  xmp: 'http://ns.adobe.com/xap/1.0/',
  tiff: 'http://ns.adobe.com/tiff/1.0/',
  exif: 'http://ns.adobe.com/exif/1.0/',
  exifEX: 'http://cipa.jp/exif/1.0/',
  aux: 'http://ns.adobe.com/exif/1.0/aux/',
  Iptc4xmpCore: 'http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/',
};
/** Namespace of `xml:lang`, which no file declares. */
const XML = 'xml';

type XmpField = keyof typeof XMP_FIELDS;
const isField = (name: string): name is XmpField => Object.hasOwn(XMP_FIELDS, name);

/** Language of a text (RFC 5646). */
const LANGUAGE = /^[A-Za-z\d-]{1,35}$/;
const DEFAULT_LANGUAGE = 'x-default';

/** An element. Names have the prefixes of {@link READ_NAMESPACES}, or none. */
interface Element {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: Element[];
  /** Markup between its tags; empty if it is not closed. */
  content: string;
}

/** Parses elements up to the first error. Every prefix has one meaning in a file. */
function parseElements(text: string): Element[] {
  const { tags } = scanMarkup(text);
  const nameOf = createNaming(tags);
  const roots: Element[] = [];
  const open: { readonly element: Element; readonly from: number }[] = [];
  for (const { prefix, name, kind, attributes, start, end } of tags) {
    if (kind === 'close') {
      const last = open.pop();
      if (last) last.element.content = text.slice(last.from, start);
      continue;
    }
    const element: Element = {
      name: nameOf(prefix, name),
      attributes: new Map(
        attributes.map((attribute) => {
          const [first = '', second] = attribute.name.split(':');
          return [second === undefined ? first : nameOf(first, second), attribute.value];
        }),
      ),
      children: [],
      content: '',
    };
    (open.at(-1)?.element.children ?? roots).push(element);
    if (kind === 'open') open.push({ element, from: end });
  }
  return roots;
}

/** Returns the function that replaces prefixes by those of {@link READ_NAMESPACES}. */
function createNaming(tags: readonly Tag[]): (prefix: string, name: string) => string {
  const ours = new Map(Object.entries(READ_NAMESPACES).map(([prefix, uri]) => [uri, prefix]));
  const declared = tags.flatMap(({ attributes }) =>
    attributes.flatMap(({ name, value }) => {
      const prefix = name.startsWith('xmlns:') ? ours.get(value) : undefined;
      return prefix ? [[name.slice('xmlns:'.length), prefix] as const] : [];
    }),
  );
  const prefixes = new Map([...declared, [XML, XML] as const]);
  return (prefix, name) => {
    const known = prefixes.get(prefix);
    return known ? `${known}:${name}` : name;
  };
}

/** Decodes character data; undefined if it has markup, or is too long. */
const decodeXml = (data: string): string | undefined =>
  data.includes('<') || data.length > MAX_TEXT_BYTES ? undefined : cleanText(decodeEntities(data));

const CONTAINERS = ['rdf:Seq', 'rdf:Alt', 'rdf:Bag'];

/** A text of a property, such as `dc:rights`. */
interface XmpText extends Pick<FieldText, 'text' | 'language'> {
  readonly name: string;
}

/** Returns the texts of a property: its items, or its content or resource. */
function textsIn(name: string, { attributes, children, content }: Element): XmpText[] {
  const containers = children.filter((child) => CONTAINERS.includes(child.name));
  const items = containers.flatMap((container) =>
    container.children.filter((item) => item.name === 'rdf:li'),
  );
  if (containers.length > 0)
    return items.map((item) => {
      const language = item.attributes.get('xml:lang') ?? '';
      return {
        name,
        text: decodeXml(item.content),
        language: LANGUAGE.test(language) ? language : undefined,
      };
    });
  return [{ name, text: decodeXml(attributes.get('rdf:resource') ?? content) }];
}

/** Maximum number of tags to parse, which takes some 10 ms. Long histories have hundreds. */
const MAX_TAGS = 4000;

/**
 * Reads properties, which are attributes or elements of a description. Returns undefined if the
 * packet is not in UTF-8, or has too many tags.
 */
export function readXmpProperties(
  packet: Buffer,
  isWanted: (name: string) => boolean,
): XmpText[] | undefined {
  const text = packet.toString();
  if (!isUtf8(packet) || text.split('<', MAX_TAGS + 2).length > MAX_TAGS + 1) return undefined;
  const roots = parseElements(text);
  const graph = [...roots, ...roots.flatMap(({ children }) => children)].find(
    ({ name }) => name === 'rdf:RDF',
  );
  const descriptions = graph?.children.filter(({ name }) => name === 'rdf:Description') ?? [];
  return descriptions.flatMap(({ attributes, children }) => [
    ...[...attributes].flatMap(([name, value]) => (isWanted(name) ? [{ name, text: decodeXml(value) }] : [])),
    ...children.flatMap((child) => (isWanted(child.name) ? textsIn(child.name, child) : [])),
  ]);
}

/** Reads the fields, as {@link readXmpProperties}. Only alternatives have a language. */
export const readXmpTexts = (packet: Buffer): FieldText[] | undefined =>
  readXmpProperties(packet, isField)?.map(({ name, text, language }) => {
    const field = name as XmpField;
    return { field, text, language: XMP_FIELDS[field] === 'Alt' ? language : undefined };
  });

/** Returns the content of a field. One that holds a single text gets the first. */
function encodeField(field: XmpField, texts: readonly FieldText[]): string {
  const shape = XMP_FIELDS[field];
  const [first] = texts;
  if (shape === 'text') return escapeXml(first?.text ?? '');
  const items = texts.map(({ text = '', language = DEFAULT_LANGUAGE }) => {
    const attribute = shape === 'Alt' ? ` xml:lang="${language}"` : '';
    return `<rdf:li${attribute}>${escapeXml(text)}</rdf:li>`;
  });
  return `<rdf:${shape}>${items.join('')}</rdf:${shape}>`;
}

/** Writes a packet with the fields; undefined if there are none. */
export function writeXmp(texts: readonly FieldText[]): Buffer | undefined {
  const properties = Object.keys(XMP_FIELDS)
    .filter(isField)
    .flatMap((field) => {
      const own = texts.filter((one) => one.field === field);
      return own.length > 0 ? [`<${field}>${encodeField(field, own)}</${field}>`] : [];
    });
  if (properties.length === 0) return undefined;
  const { rdf, ...others } = NAMESPACES;
  const declarations = Object.entries(others).map(([prefix, uri]) => ` xmlns:${prefix}="${uri}"`);
  return Buffer.from(
    [
      '<?xpacket begin="\uFEFF" id="W5M0MpCehiHzreSzNTczkc9d"?>',
      `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="${rdf}">`,
      `<rdf:Description rdf:about=""${declarations.join('')}>`,
      ...properties,
      '</rdf:Description></rdf:RDF></x:xmpmeta>',
      '<?xpacket end="r"?>',
    ].join(''),
  );
}
