/**
 * @module The operations of imaginary: what each asks for, in terms of one conversion. Rules:
 * https://github.com/h2non/imaginary/blob/master/image.go, and resizer.go of its library bimg.
 */
import { MAX_DIMENSION } from '../../tables/formats.ts';
import { imageWatermark, type RequestedWatermark, textWatermark } from './overlays.ts';
import { type Fields, integer, invalid, isTrue, type Params, textOf, toHex } from './params.ts';

/** An operation and its parameters. */
export interface OperationCall {
  readonly operation: string;
  readonly params: Params;
  /** Whether the picture stays as it is if the operation fails. */
  readonly ignoresFailure?: boolean;
}

/** What the operations so far ask for. */
export interface Plan {
  readonly crop?: Rectangle;
  /** Fields of the size, once an operation has set it. */
  readonly box?: Fields;
  /** Degrees clockwise, before the reflections. */
  readonly angle?: number;
  /** Whether the picture is upside down. */
  readonly flip?: boolean;
  /** Whether left and right are exchanged. */
  readonly flop?: boolean;
  /** What is put on the picture, after everything else. */
  readonly watermark?: RequestedWatermark;
}
type Rectangle = readonly [left: number, top: number, width: number, height: number];

type Box = (width: number | undefined, height: number | undefined, params: Params) => Fields;

/** Creates an operation that sets the size. It requires `needs` sides. Without any, it stays. */
const sizing =
  (needs: 0 | 1 | 2, box: Box) =>
  (plan: Plan, params: Params): Plan => {
    const [width, height] = sidesOf(params);
    const missing = width === undefined ? 'width' : 'height';
    if ([width, height].filter(Boolean).length < needs)
      throw invalid(missing, '', needs === 1 ? 'width or height to be set' : 'width and height to be set');
    if (!width && !height) return plan;
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
const inside: Box = (width, height) => ({ width, height });
/** Scales to exactly this size, as bimg does without another rule. */
const force: Box = (width, height) => ({
  width,
  height,
  fit: width && height ? 'fill' : 'inside',
  enlarge: 'true',
});
/** The size of operations that do not need one. */
const optionalSize = sizing(0, force);

/** What each operation does. Results are always upright, so `autorotate` has nothing to do. */
const OPERATIONS: Readonly<Record<string, (plan: Plan, params: Params) => Plan>> = {
  autorotate: (plan) => plan,
  convert(plan, params) {
    if (!params.type) throw invalid('type', '', 'a format');
    return optionalSize(plan, params);
  },
  resize: sizing(1, (width, height, params) => {
    if (isTrue(params, 'force')) return force(width, height, params);
    if (params.nocrop !== undefined && !isTrue(params, 'nocrop')) return cover(width, height, params);
    return { width, height, fit: width && height ? 'contain' : undefined };
  }),
  fit: sizing(2, inside),
  crop: sizing(1, cover),
  smartcrop: sizing(1, (width, height) => cover(width, height, { gravity: 'smart' })),
  enlarge: sizing(2, (width, height, params) => ({
    ...(isTrue(params, 'nocrop') ? inside : cover)(width, height, params),
    enlarge: 'true',
  })),
  thumbnail: sizing(1, force),
  extract,
  zoom(plan, params) {
    const factor = integer(params, 'factor') ?? 0;
    if (factor < 1 || factor > MAX_ZOOM)
      throw invalid('factor', textOf(params, 'factor'), `a whole number from 1 to ${MAX_ZOOM}`);
    // bimg resizes the enlarged picture to exactly this size, so the factor has no effect on it.
    if (sidesOf(params).some(Boolean)) return optionalSize(plan, params);
    const cut = hasArea(params) ? extract(plan, params) : plan;
    return { ...cut, box: { scale: (factor + 1) * 100, enlarge: 'true' } };
  },
  rotate(plan, params) {
    if (!angleOf(params)) throw invalid('rotate', textOf(params, 'rotate'), ANGLES);
    return optionalSize(plan, params); // every operation can have the parameter
  },
  flip: optionalSize,
  flop: optionalSize,
  blur(plan, params) {
    if (!Number(params.sigma)) throw invalid('sigma', textOf(params, 'sigma'), 'a number above 0');
    return optionalSize(plan, params);
  },
  watermark: (plan, params) => ({ ...optionalSize(plan, params), watermark: textWatermark(params) }),
  watermarkimage: (plan, params) => ({ ...optionalSize(plan, params), watermark: imageWatermark(params) }),
};

/** Maximum of `factor`, which bimg adds to the size: `scale` is at most ten times the size. */
const MAX_ZOOM = 9;

/** Returns whether `zoom` cuts an area out. */
export const hasArea = (params: Params): boolean =>
  ['left', 'top', 'areawidth', 'areaheight'].some((name) => integer(params, name));

/** Cuts an area out of that of the extract before. */
function extract(plan: Plan, params: Params): Plan {
  const [left = 0, top = 0] = [integer(params, 'left'), integer(params, 'top')];
  const [width, height] = [integer(params, 'areawidth'), integer(params, 'areaheight')];
  if (!width || !height) throw invalid('areawidth', '', 'areawidth and areaheight to be set');
  const [x, y, across, down] = plan.crop ?? [0, 0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  if (left + width > across || top + height > down)
    throw invalid('areawidth', String(width), 'an area inside of that of the extract before');
  return { ...plan, crop: [x + left, y + top, width, height] };
}

const ANGLES = '90, 180 or 270';

/** Returns the parameter `rotate` in degrees; 0 if it is absent. */
function angleOf(params: Params): number {
  const angle = integer(params, 'rotate') ?? 0;
  if (angle % 90 !== 0 || angle > 270) throw invalid('rotate', textOf(params, 'rotate'), ANGLES);
  return angle;
}

/** Adds a rotation, and then reflections. bimg does both before it cuts and resizes. */
function turn(plan: Plan, { angle, flip, flop }: Required<Pick<Plan, 'angle' | 'flip' | 'flop'>>): Plan {
  // A reflection reverses the direction of what was turned before it.
  const isReflected = plan.flip !== plan.flop;
  return {
    ...plan,
    angle: ((plan.angle ?? 0) + (isReflected ? 360 - angle : angle)) % 360,
    flip: plan.flip !== flip,
    flop: plan.flop !== flop,
  };
}

/** Names of the operations, also as paths. Only a pipeline has `autorotate`. */
export const OPERATION_NAMES = Object.keys(OPERATIONS);

/** A plan that leaves the picture as it is. */
export const UNCHANGED: Plan = { angle: 0, flip: false, flop: false };

/**
 * Applies an operation, and the rotation and reflections that every operation can have.
 *
 * @throws {ServiceError} FIELD_INVALID for an operation or a parameter that is unknown here
 */
export function apply(plan: Plan, { operation, params }: OperationCall): Plan {
  const run = Object.hasOwn(OPERATIONS, operation) && OPERATIONS[operation];
  if (!run) throw invalid('operation', operation, `one of ${OPERATION_NAMES.join(', ')}`);
  const has = (name: string) => operation === name || isTrue(params, name);
  return run(turn(plan, { angle: angleOf(params), flip: has('flip'), flop: has('flop') }), params);
}

/** Returns the fields of parameters that hold until another operation has them. */
export function lastingFieldsOf(params: Params): Fields {
  const { type, background, extend } = params;
  const quality = params.quality === 'auto' ? 'auto' : integer(params, 'quality');
  return {
    ...(type ? { output_format: String(type) } : {}),
    ...(quality && { quality }),
    ...(isTrue(params, 'stripmeta') && { strip_metadata: 'true' }),
    ...(background ? { background: toHex(String(background)) } : {}),
    ...(extend === 'white' || extend === 'black' ? { background: String(extend) } : {}),
  };
}

/** Returns the fields of the effects that every operation can have. */
export function effectsOf({ sigma, colorspace }: Params): Fields {
  return {
    ...(Number(sigma) ? { blur: String(sigma) } : {}),
    ...(colorspace === 'bw' && { greyscale: 'true' }),
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
