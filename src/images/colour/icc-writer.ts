/** @module Writes small ICC v4 profiles (ICC.1:2022, sections 7 to 10). */

/** CIE XYZ of the reference white of profiles, D50 (section 7.2.16). */
export const WHITE_D50 = [0.9642, 1, 0.8249] as const;

/** A tag of a profile: its signature and its content. */
export type ProfileTag = readonly [signature: string, content: Buffer];

/** Date in the header. It is fixed, so that the same colours always give the same bytes. */
const CREATED = [2026, 1, 1, 0, 0, 0];

/** Encodes a display profile for RGB with XYZ as the connection space. Equal contents are stored once. */
export function writeProfile(name: string, tags: readonly ProfileTag[]): Buffer {
  const all: ProfileTag[] = [
    ['desc', text(name)],
    ['cprt', text('No copyright')],
    ['wtpt', xyz(WHITE_D50)],
    ...tags,
  ];
  const contents = [...new Set(all.map(([, content]) => content))];
  const start = 128 + 4 + all.length * 12;
  const offsetOf = (content: Buffer): number =>
    contents.slice(0, contents.indexOf(content)).reduce((sum, { length }) => sum + length, start);
  const table = all.map(([signature, content]) =>
    Buffer.concat([latin1(signature), u32(offsetOf(content)), u32(content.length)]),
  );
  const body = Buffer.concat([u32(all.length), ...table, ...contents]);
  return Buffer.concat([header(128 + body.length), body]);
}

function header(size: number): Buffer {
  const bytes = Buffer.alloc(128);
  bytes.writeUInt32BE(size, 0);
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

/** Encodes numbers as `sf32` (s15Fixed16ArrayType). */
export function fixedArray(values: readonly number[]): Buffer {
  return element('sf32', fixed(values));
}

/**
 * Encodes the curve Y = (aX + b)^g for X ≥ d, and Y = cX below (parametricCurveType, function 3).
 *
 * @param parameters g, a, b, c, d
 */
export function parametricCurve(parameters: readonly number[]): Buffer {
  return element('para', u16(3), u16(0), fixed(parameters));
}

export interface LookupTable {
  readonly points: number;
  /** Three 16-bit values per grid point; the last input channel varies fastest. */
  readonly values: Uint16Array;
  /** Curve of the values, as in {@link parametricCurve}. */
  readonly curve: readonly number[];
  /** Rows of the matrix from the curve's output to XYZ. */
  readonly matrix: readonly number[];
}

/** XYZ of 1.0 as an encoded value of the connection space (section 6.3.4.2). */
const XYZ_SCALE = 32_768 / 65_535;

/** Encodes a three-dimensional table that is followed by a curve and a matrix (lutAToBType). */
export function lookupTable({ points, values, curve, matrix }: LookupTable): Buffer {
  const identity = element('curv', u32(0));
  const none = Buffer.concat([identity, identity, identity]);
  const output = parametricCurve(curve);
  const numbers = Buffer.concat([fixed(matrix.map((value) => value * XYZ_SCALE)), Buffer.alloc(12)]);
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
const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
