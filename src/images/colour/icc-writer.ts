/** @module Writes small ICC v4 profiles (ICC.1:2022, sections 7 to 10). */
import { bigEndian } from '../containers/file.ts';
import type { Chromaticity, Primaries } from '../image-info.ts';

/** CIE XYZ of the reference white of profiles, D50 (section 7.2.16). */
const WHITE_D50 = [0.9642, 1, 0.8249] as const;

/** A tag of a profile: its signature and its content. */
export type ProfileTag = readonly [signature: string, content: Buffer];

/** Date in the header. It is fixed, so that the same colours always give the same bytes. */
const CREATED = [2026, 1, 1, 0, 0, 0];

/** Encodes a display profile for RGB with XYZ as the connection space. */
export const writeProfile = (name: string, tags: readonly ProfileTag[]): Buffer =>
  assembleProfile(header(), [
    ['desc', text(name)],
    ['cprt', text('No copyright')],
    ['wtpt', xyz(WHITE_D50)],
    ...tags,
  ]);

/**
 * Encodes the description and the copyright, which a profile must have, without a text of its
 * maker. `isOld` states that the profile has a version before 4.
 */
export const neutralTexts = (isOld: boolean): ProfileTag[] => [
  ['desc', isOld ? oldDescription('Colours') : text('Colours')],
  ['cprt', isOld ? element('text', latin1('No copyright\0')) : text('No copyright')],
];

/** Encodes a description of ICC.1:2001-04, section 6.5.17: ASCII, and no Unicode or ScriptCode. */
const oldDescription = (content: string): Buffer =>
  element('desc', u32(content.length + 1), latin1(`${content}\0`), Buffer.alloc(78));

/** Puts a profile together. Equal contents are stored once. */
export function assembleProfile(head: Buffer, tags: readonly ProfileTag[]): Buffer {
  const contents = [...new Set(tags.map(([, content]) => content))];
  const start = 128 + 4 + tags.length * 12;
  const offsetOf = (content: Buffer): number =>
    contents.slice(0, contents.indexOf(content)).reduce((sum, { length }) => sum + length, start);
  const table = tags.map(([signature, content]) =>
    Buffer.concat([latin1(signature), u32(offsetOf(content)), u32(content.length)]),
  );
  const profile = Buffer.concat([head, u32(tags.length), ...table, ...contents]);
  profile.writeUInt32BE(profile.length);
  return profile;
}

function header(): Buffer {
  const bytes = Buffer.alloc(128);
  bytes.writeUInt32BE(0x04400000, 8); // version 4.4
  bytes.write('mntrRGB XYZ ', 12, 'latin1');
  CREATED.forEach((value, at) => {
    bytes.writeUInt16BE(value, 24 + at * 2);
  });
  bytes.write('acsp', 36, 'latin1');
  fixed(WHITE_D50).copy(bytes, 68);
  return bytes;
}

/** Encodes CIE XYZ values (XYZType). */
export function xyz(values: readonly number[]): Buffer {
  return element('XYZ ', fixed(values));
}

/** Points of a sampled curve: the error of a 16-bit value is below 21. */
const CURVE_POINTS = 1024;

/**
 * Encodes the curve Y = (aX + b)^g for X ≥ d, and Y = cX below, as a table (curveType), which
 * Little CMS evaluates in a quarter of the time of a power function.
 *
 * @param parameters g, a, b, c, d
 */
export function sampledCurve([g = 1, a = 1, b = 0, c = 1, d = 0]: readonly number[]): Buffer {
  const values = Array.from({ length: CURVE_POINTS }, (_, at) => {
    const x = at / (CURVE_POINTS - 1);
    const y = x < d ? c * x : Math.max(0, a * x + b) ** g;
    return u16(Math.round(Math.max(0, Math.min(1, y)) * 65_535));
  });
  return element('curv', u32(CURVE_POINTS), ...values);
}

export interface LookupTable {
  readonly points: number;
  /** Three 16-bit values per grid point; the last input channel varies fastest. */
  readonly values: Uint16Array;
  /** Curve of the values, as in {@link sampledCurve}. */
  readonly curve: readonly number[];
  /** Rows of the matrix from the curve's output to XYZ. */
  readonly matrix: Matrix3;
}

/** XYZ of 1.0 as an encoded value of the connection space (section 6.3.4.2). */
const XYZ_SCALE = 32_768 / 65_535;

/** Encodes a three-dimensional table that is followed by a curve and a matrix (lutAToBType). */
export function lookupTable({ points, values, curve, matrix }: LookupTable): Buffer {
  const identity = element('curv', u32(0));
  const none = Buffer.concat([identity, identity, identity]);
  const output = sampledCurve(curve);
  const numbers = Buffer.concat([fixed(matrix.flat().map((value) => value * XYZ_SCALE)), Buffer.alloc(12)]);
  const grid = Buffer.alloc(20 + values.length * 2);
  grid.fill(points, 0, 3);
  grid[16] = 2; // bytes per value
  values.forEach((value, at) => {
    grid.writeUInt16BE(value, 20 + at * 2);
  });
  const padding = Buffer.alloc(-grid.length & 3);
  const curvesOut = 32;
  const matrixAt = curvesOut + none.length;
  const curves = matrixAt + numbers.length;
  const gridAt = curves + output.length * 3;
  const curvesIn = gridAt + grid.length + padding.length;
  const offsets = [curvesOut, matrixAt, curves, gridAt, curvesIn].map(u32);
  const parts = [none, numbers, output, output, output, grid, padding, none];
  return element('mAB ', Buffer.from([3, 3, 0, 0]), ...offsets, ...parts);
}

function text(content: string): Buffer {
  const encoded = Buffer.from(content, 'utf16le').swap16();
  return element('mluc', u32(1), u32(12), latin1('enUS'), u32(encoded.length), u32(28), encoded);
}

function element(type: string, ...body: Buffer[]): Buffer {
  const data = Buffer.concat([latin1(type), u32(0), ...body]);
  return Buffer.concat([data, Buffer.alloc(-data.length & 3)]);
}

function fixed(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, at) => {
    bytes.writeInt32BE(Math.round(value * 65_536), at * 4);
  });
  return bytes;
}

const latin1 = (value: string): Buffer => Buffer.from(value, 'latin1');
const u16 = (value: number): Buffer => bigEndian(value, 2);
const u32 = (value: number): Buffer => bigEndian(value, 4);

export type Vector = readonly [number, number, number];
/** A matrix of three rows. */
export type Matrix3 = readonly [Vector, Vector, Vector];

/** Cone responses of the Bradford method (ICC.1:2022, annex E). */
const BRADFORD: Matrix3 = [
  [0.8951, 0.2664, -0.1614],
  [-0.7502, 1.7135, 0.0367],
  [0.0389, -0.0685, 1.0296],
];

/** Calculates the matrix from linear RGB to XYZ, adapted to the white of profiles, D50. */
export function rgbToXyzD50({ red, green, blue, white }: Primaries): Matrix3 {
  const [x, y, z] = tristimulus(white);
  const whiteXyz: Vector = [x / y, 1, z / y];
  const unscaled = transpose([tristimulus(red), tristimulus(green), tristimulus(blue)]);
  const scale = apply(invert(unscaled), whiteXyz);
  return multiply(adaptation(whiteXyz), multiply(unscaled, diagonal(scale)));
}

/** CIE XYZ of a chromaticity, up to a factor. */
function tristimulus([x, y]: Chromaticity): Vector {
  return [x, y, 1 - x - y];
}

function adaptation(white: Vector): Matrix3 {
  const [from, to] = [apply(BRADFORD, white), apply(BRADFORD, WHITE_D50)];
  const scale: Vector = [to[0] / from[0], to[1] / from[1], to[2] / from[2]];
  return multiply(invert(BRADFORD), multiply(diagonal(scale), BRADFORD));
}

const dot = ([a, b, c]: Vector, [x, y, z]: Vector): number => a * x + b * y + c * z;

const cross = ([a, b, c]: Vector, [x, y, z]: Vector): Vector => [b * z - c * y, c * x - a * z, a * y - b * x];

const diagonal = ([x, y, z]: Vector): Matrix3 => [
  [x, 0, 0],
  [0, y, 0],
  [0, 0, z],
];

export function apply(matrix: Matrix3, vector: Vector): Vector {
  return [dot(matrix[0], vector), dot(matrix[1], vector), dot(matrix[2], vector)];
}

export function multiply(matrix: Matrix3, other: Matrix3): Matrix3 {
  const [first, second, third] = transpose(other);
  return transpose([apply(matrix, first), apply(matrix, second), apply(matrix, third)]);
}

export function transpose([[a, b, c], [d, e, f], [g, h, i]]: Matrix3): Matrix3 {
  return [
    [a, d, g],
    [b, e, h],
    [c, f, i],
  ];
}

/** Calculates the determinant: 0 if the rows are on one plane. */
export const determinant = ([one, other, third]: Matrix3): number => dot(one, cross(other, third));

/** Inverts a matrix. The result is not finite if the primaries are on one line. */
export function invert(matrix: Matrix3): Matrix3 {
  const [one, other, third] = matrix;
  const factor = determinant(matrix);
  const divide = ([x, y, z]: Vector): Vector => [x / factor, y / factor, z / factor];
  return transpose([divide(cross(other, third)), divide(cross(third, one)), divide(cross(one, other))]);
}
