/** @module Pipelines of imaginary: their JSON, and the conversions that they become, mostly one. */
import type { TextField } from '../../conversion/context.ts';
import {
  apply,
  effectsOf,
  hasArea,
  lastingFieldsOf,
  OPERATION_NAMES,
  type OperationCall,
  type Plan,
  UNCHANGED,
} from './edit-operations.ts';
import type { RequestedWatermark } from './overlays.ts';
import { type Fields, integer, invalid, type Params } from './params.ts';

/** One conversion of a pipeline. */
export interface Pass {
  readonly fields: readonly TextField[];
  /** Whether the next pass converts the same picture if this one fails. The last is required. */
  readonly isOptional: boolean;
  /** What is put on the picture. */
  readonly watermark: RequestedWatermark | undefined;
}

const isTurned = ({ angle, flip, flop }: Plan): boolean => Boolean(angle || flip || flop);

const isEmpty = (plan: Plan, effects: Fields): boolean =>
  !plan.box && !plan.crop && !isTurned(plan) && !plan.watermark && Object.keys(effects).length === 0;

/**
 * Returns whether one conversion can do what both plans ask for: it rotates, then cuts, then
 * resizes, and then adds the watermark, but the borders of `contain` come last.
 */
const fitsAfter = (plan: Plan, next: Plan): boolean =>
  !(plan.box && (next.box || next.crop || isTurned(next))) &&
  !(plan.crop && isTurned(next)) &&
  !(plan.box?.fit === 'contain' && next.watermark);

/** Fields of a conversion whose result another one converts. The PNG keeps all metadata. */
const BETWEEN: Fields = { output_format: 'png', strip_metadata: 'false' };

/**
 * Returns the conversions for operations in order. The last has no `output_format` if no operation
 * has a type.
 *
 * @throws {ServiceError} FIELD_INVALID for an operation or a parameter that is unknown here
 */
export function toPasses(operations: readonly OperationCall[]): Pass[] {
  const passes: Pass[] = [];
  // imaginary keeps metadata unless `stripmeta` is set, and converts the first frame only.
  const lasting: Record<string, string | number> = {
    strip_metadata: 'false',
    frames: 'first',
    pages: 'first',
  };
  let effects: Fields = {};
  let plan = UNCHANGED;
  const endPass = (isOptional: boolean): void => {
    passes.push({
      fields: toFields(plan, { ...lasting, ...BETWEEN, ...effects }),
      isOptional,
      watermark: plan.watermark,
    });
    plan = UNCHANGED;
    effects = {};
  };
  for (const call of operations.flatMap(sizeFirst)) {
    const alone = applyAlone(call);
    if (!alone) continue;
    const added = effectsOf(call.params);
    const fits = plan.watermark ? isEmpty(alone, added) : fitsAfter(plan, alone);
    if (!isEmpty(plan, effects) && (call.ignoresFailure || !fits)) endPass(false);
    plan = apply(plan, call);
    Object.assign(lasting, lastingFieldsOf(call.params));
    effects = { ...effects, ...added };
    if (call.ignoresFailure) endPass(true);
  }
  const fields = toFields(plan, { ...lasting, ...effects });
  return [...passes, { fields, isOptional: false, watermark: plan.watermark }];
}

/** Applies one operation to a picture; undefined if it fails and its failure is ignored. */
function applyAlone(call: OperationCall): Plan | undefined {
  try {
    return apply(UNCHANGED, call);
  } catch (error) {
    if (call.ignoresFailure && OPERATION_NAMES.includes(call.operation)) return undefined;
    throw error;
  }
}

/**
 * Splits `extract` or `zoom` with a size and an area: bimg resizes first, and cuts the area out of
 * the result.
 *
 * @throws {ServiceError} FIELD_INVALID if its failure is to be ignored
 */
function sizeFirst(call: OperationCall): OperationCall[] {
  const { operation, params } = call;
  const { width, height, factor, ...others } = params;
  const cuts = operation === 'extract' || (operation === 'zoom' && hasArea(params));
  if (!cuts || (!integer(params, 'width') && !integer(params, 'height'))) return [call];
  // The picture would stay resized if only the second part failed.
  if (call.ignoresFailure) throw invalid('ignore_failure', 'true', `${operation} without width and height`);
  return [
    { ...call, operation: operation === 'zoom' ? operation : 'thumbnail', params: { width, height, factor } },
    { ...call, operation: 'extract', params: others },
  ];
}

/** Returns the fields of a plan, after other fields. */
function toFields({ crop, box, angle, flip, flop, watermark }: Plan, others: Fields): TextField[] {
  const fields: Fields = {
    ...others,
    ...box,
    ...watermark?.fields,
    rotate: angle || undefined,
    flip: flip && flop ? 'both' : flip ? 'vertical' : flop ? 'horizontal' : undefined,
    crop: crop?.join(','),
  };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
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
    const { operation, params = {}, ignore_failure: ignoresFailure = false } = Object(entry);
    if (typeof operation !== 'string' || typeof params !== 'object') throw fail();
    return { operation, params: plainValues(params ?? {}), ignoresFailure: ignoresFailure === true };
  });
}

/** Returns the parameters without null. Arrays and objects have no text or number. */
function plainValues(params: object): Params {
  const entries = Object.entries(params).filter(([, value]) => value !== null);
  const [name] = entries.find(([, value]) => typeof value === 'object') ?? [];
  if (name !== undefined) throw invalid(name, '', 'a text, a number, true or false');
  return Object.fromEntries(entries);
}
