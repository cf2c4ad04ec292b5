/**
 * @module Translates the operations of imaginary to form fields of `/convert`. A pipeline becomes one set of options, and so
 * one plan. Rules: https://github.com/h2non/imaginary/blob/master/image.go, and resizer.go of its library bimg.
 */
import type { TextField } from '../../conversion/types.ts';
import { serviceError } from '../../errors.ts';
import { MAX_DIMENSION } from '../../formats.ts';
import { sanitizeForDisplay } from '../../text.ts';

/** Parameters by name: text of a query, or values of JSON without arrays, objects and null. */
type Params = Readonly<Record<string, string | number | boolean>>;

/** An operation and its parameters. */
export interface OperationCall {
  readonly operation: string;
  readonly params: Params;
}

/** What the operations so far ask for. */
interface Plan {
  readonly crop?: Rectangle;
  /** Fields of the size, once an operation has set it. */
  readonly box?: Fields;
}
type Fields = Readonly<Record<string, string | number>>;
type Rectangle = readonly [left: number, top: number, width: number, height: number];

type Box = (width: number | undefined, height: number | undefined, params: Params) => Fields;

/** Creates an operation that sets the size. `needs` is the number of sides that it requires. */
const sizing =
  (needs: 1 | 2, box: Box) =>
  (plan: Plan, params: Params): Plan => {
    const [width, height] = sidesOf(params);
    const missing = width === undefined ? 'width' : 'height';
    if ([width, height].filter(Boolean).length < needs)
      throw invalid(missing, '', needs === 1 ? 'width or height to be set' : 'width and height to be set');
    if (plan.box) throw invalid('operations', 'a second size', 'one operation that sets the size');
    return { ...plan, box: box(width, height, params) };
  };

/** A missing side leaves the picture as it is in this direction: it is cut, but not scaled. */
const cover: Box = (width = MAX_DIMENSION, height = MAX_DIMENSION, { gravity }) => ({
  width,
  height,
  fit: 'cover',
  position: GRAVITIES.get(String(gravity).toLowerCase()) ?? 'center',
});
const GRAVITIES = new Map([
  ...['north', 'south', 'east', 'west'].map((name) => [name, name] as const),
  ['smart', 'attention'],
]);
const inside: Box = (width, height) => ({ ...(width && { width }), ...(height && { height }) });
/** Scales to exactly this size, as bimg does without another rule. */
const force: Box = (width, height) => ({
  ...inside(width, height, {}),
  fit: width && height ? 'fill' : 'inside',
  enlarge: 'true',
});

/** What each operation does. Results are always upright, so `autorotate` has nothing to do. */
const OPERATIONS: Readonly<Record<string, (plan: Plan, params: Params) => Plan>> = {
  autorotate: (plan) => plan,
  convert(plan, { type }) {
    if (!type) throw invalid('type', '', 'a format');
    return plan;
  },
  resize: sizing(1, (width, height, params) => {
    if (isTrue(params, 'force')) return force(width, height, params);
    if (params.nocrop !== undefined && !isTrue(params, 'nocrop')) return cover(width, height, params);
    return { ...inside(width, height, params), ...(width && height && { fit: 'contain' }) };
  }),
  fit: sizing(2, inside),
  crop: sizing(1, cover),
  smartcrop: sizing(1, (width, height) => cover(width, height, { gravity: 'smart' })),
  enlarge: sizing(2, (width, height, params) => ({
    ...(isTrue(params, 'nocrop') ? inside : cover)(width, height, params),
    enlarge: 'true',
  })),
  thumbnail: sizing(1, force),
  extract(plan, params) {
    if (plan.box) throw invalid('operations', 'extract', 'extract before an operation that sets the size');
    const [left = 0, top = 0] = [integer(params, 'left'), integer(params, 'top')];
    const [width, height] = [integer(params, 'areawidth'), integer(params, 'areaheight')];
    if (!width || !height) throw invalid('areawidth', '', 'areawidth and areaheight to be set');
    if (integer(params, 'width') || integer(params, 'height'))
      throw invalid('width', String(params.width ?? params.height), 'extract without width and height');
    const [x, y, across, down] = plan.crop ?? [0, 0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    if (left + width > across || top + height > down)
      throw invalid('areawidth', String(width), 'an area inside of that of the extract before');
    return { ...plan, crop: [x + left, y + top, width, height] };
  },
};

/** Names of the operations, also as paths. Only a pipeline has `autorotate`. */
export const OPERATION_NAMES = Object.keys(OPERATIONS);

/** Parameters that would change the picture in a way that this service does not offer. */
const UNSUPPORTED: Readonly<Record<string, RegExp>> = {
  rotate: /^(?!0*$)/,
  flip: /^(?:1|t|true)$/i,
  flop: /^(?:1|t|true)$/i,
  sigma: /^(?!0*$)/,
  minampl: /^(?!0*$)/,
  colorspace: /^bw$/,
};

/**
 * Returns the form fields for operations in order. There is no `output_format` if no operation has a type.
 *
 * @throws {ServiceError} FIELD_INVALID for an operation or a parameter that is unknown here, and for operations that do not fit
 *   into one plan
 */
export function toFields(operations: readonly OperationCall[]): TextField[] {
  let plan: Plan = {};
  // imaginary keeps metadata unless `stripmeta` is set, and converts the first frame only.
  const others: Record<string, string | number> = {
    strip_metadata: 'false',
    frames: 'first',
    pages: 'first',
  };
  for (const { operation, params } of operations) {
    const apply = Object.hasOwn(OPERATIONS, operation) && OPERATIONS[operation];
    if (!apply) throw invalid('operation', operation, `one of ${OPERATION_NAMES.join(', ')}`);
    for (const [name, pattern] of Object.entries(UNSUPPORTED))
      if (params[name] !== undefined && pattern.test(String(params[name])))
        throw invalid(name, String(params[name]), 'no such change, which is not supported');
    Object.assign(others, othersOf(params));
    plan = apply(plan, params);
  }
  const { crop, box } = plan;
  const fields = { ...others, ...box, ...(crop && { crop: crop.join(',') }) };
  return Object.entries(fields).map(([name, value]) => [name, String(value)]);
}

/** Returns the fields of the parameters that every operation can have. */
function othersOf(params: Params): Fields {
  const { type, background, extend } = params;
  const quality = integer(params, 'quality');
  return {
    ...(type ? { output_format: String(type) } : {}),
    ...(quality && { quality }),
    ...(isTrue(params, 'stripmeta') && { strip_metadata: 'true' }),
    ...(background ? { background: toHex(String(background)) } : {}),
    ...(extend === 'white' || extend === 'black' ? { background: String(extend) } : {}),
  };
}

/** Returns the width and the height. If there is only one, `aspectratio` can state the other. */
function sidesOf(params: Params): [width: number | undefined, height: number | undefined] {
  const [width, height] = [integer(params, 'width'), integer(params, 'height')];
  const [, across, down] = /^(\d{1,5}):(\d{1,5})$/.exec(String(params.aspectratio)) ?? [];
  const ratio = Number(across) / Number(down);
  if (!ratio || !Number.isFinite(ratio) || (width && height)) return [width, height];
  return [
    width ?? (height && Math.max(1, Math.round(height * ratio))),
    height ?? (width && Math.max(1, Math.round(width / ratio))),
  ];
}

/** Returns a parameter as a whole number, rounded as imaginary does; undefined if it is absent, empty or 0. */
function integer(params: Params, name: string): number | undefined {
  const value = params[name] ?? '';
  if (value === '') return undefined;
  const number = Math.round(Number(value));
  if (!(number >= 0)) throw invalid(name, String(value), 'a number');
  return number || undefined;
}

const isTrue = (params: Params, name: string): boolean => /^(?:1|t|true)$/i.test(String(params[name]));

/** Converts a colour such as `255,200,150`. Any other text stays, and gets the error of `background`. */
function toHex(colour: string): string {
  const parts = colour.split(',').map((part) => Number(part.trim()));
  if (parts.length !== 3 || !parts.every((part) => part >= 0 && part <= 255)) return colour;
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
}

/** Maximum length of the JSON text of a pipeline, in characters. */
const MAX_PIPELINE_LENGTH = 16 * 1024;
/** Maximum number of operations, as in imaginary. */
const MAX_OPERATIONS = 10;

/**
 * Parses the operations of a pipeline.
 *
 * @throws {ServiceError} FIELD_INVALID if they are no JSON, too long or too many
 */
export function parsePipeline(text: string): OperationCall[] {
  const expected = `a JSON array of 1 to ${MAX_OPERATIONS} operations, at most ${MAX_PIPELINE_LENGTH} characters`;
  const fail = () => invalid('operations', text.slice(0, 80), expected);
  if (text.length > MAX_PIPELINE_LENGTH) throw fail();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw fail();
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || parsed.length > MAX_OPERATIONS) throw fail();
  return parsed.map((entry) => {
    const { operation, params = {} } = Object(entry);
    if (typeof operation !== 'string' || typeof params !== 'object') throw fail();
    return { operation, params: plainValues(params ?? {}) };
  });
}

/** Returns the parameters without those that are null. An array or object could not be converted to a text or a number. */
function plainValues(params: object): Params {
  const entries = Object.entries(params).filter(([, value]) => value !== null);
  const [name] = entries.find(([, value]) => typeof value === 'object') ?? [];
  if (name !== undefined) throw invalid(name, '', 'a text, a number, true or false');
  return Object.fromEntries(entries);
}

const invalid = (name: string, value: string, expected: string) =>
  serviceError('FIELD_INVALID', name, sanitizeForDisplay(value), expected);
