/**
 * @module Replaces `feDropShadow`, which librsvg before 2.55 does not support, by equivalent filters (Filter Effects 1,
 * section 9.12).
 */
import { type Attribute, applyEdits, type Edit, type Markup, type Tag } from './markup.ts';

/** Attributes of the filter region, which all replacement filters get. */
const REGION = ['x', 'y', 'width', 'height'];
/** Attributes that feFlood does not get. */
const NOT_FLOOD = [...REGION, 'in', 'dx', 'dy', 'stdDeviation', 'result', 'id'];

/** Maximum number of drop shadows to replace. The replacement is ten times as long. */
const MAX_SHADOWS = 500;
/** Maximum number of tags inside a drop shadow, such as animations. */
const MAX_CHILDREN = 20;

/** Replaces the drop shadows, unless there are too many. */
export function expandDropShadows(text: string, { tags }: Markup): string {
  if (tags.filter(({ name }) => name === 'feDropShadow').length > MAX_SHADOWS) return text;
  const edits = tags.flatMap((tag, at): Edit[] => {
    if (tag.name !== 'feDropShadow' || tag.kind === 'close') return [];
    const closing =
      tag.kind === 'open'
        ? tags.slice(at, at + MAX_CHILDREN).find(({ name, kind }) => name === tag.name && kind === 'close')
        : tag;
    return closing ? [{ start: tag.start, end: closing.end, text: partsOf(text, tag, at) }] : [];
  });
  return applyEdits(text, edits);
}

/**
 * A number, or two of `stdDeviation`. Browsers and librsvg use 2 instead of any other value, such as a percentage. A character
 * reference can stand for anything.
 */
const NUMBER = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;
const isNumber = ({ name, value }: Attribute): boolean =>
  value.includes('&') ||
  (name === 'stdDeviation'
    ? value
        .trim()
        .split(/\s*,\s*|\s+/)
        .every((part, at) => at < 2 && NUMBER.test(part))
    : NUMBER.test(value));

/**
 * Returns the markup of the filters that replace a drop shadow.
 *
 * @param id makes the names of results unique
 */
function partsOf(text: string, { attributes, start, name }: Tag, id: number): string {
  const prefix = text.slice(start + 1, text.indexOf(name, start)); // namespace prefix
  const source = (attribute: Attribute | undefined, as = attribute?.name): string =>
    attribute ? ` ${as}=${text.slice(attribute.start - 1, attribute.end + 1)}` : '';
  const find = (key: string): Attribute | undefined => attributes.find((attribute) => attribute.name === key);
  const region = REGION.map((side) => source(find(side))).join('');
  const flood = attributes
    .filter((attribute) => !NOT_FLOOD.includes(attribute.name))
    .map((one) => source(one));
  const part = (kind: string, rest: string): string => `<${prefix}${kind}${region}${rest}/>`;
  const [input, shadow, result] = [`shadow-of-${id}`, `shadow-${id}`, source(find('result'))];
  const number = (key: string): string => {
    const attribute = find(key);
    return attribute && isNumber(attribute) ? source(attribute) : ` ${key}="2"`;
  };
  return [
    part('feOffset', `${source(find('in'))} result="${input}"`), // gives the input a name, also if it has none
    part('feGaussianBlur', ` in="${input}"${number('stdDeviation')}`),
    part('feOffset', `${number('dx')}${number('dy')} result="${shadow}"`),
    part('feFlood', flood.join('')),
    part('feComposite', ` operator="in" in2="${shadow}"`),
    `<${prefix}feMerge${region}${result}><${prefix}feMergeNode/><${prefix}feMergeNode in="${input}"/></${prefix}feMerge>`,
  ].join('');
}
