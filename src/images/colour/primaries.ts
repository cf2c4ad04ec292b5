/** @module Matrices between RGB colour spaces and CIE XYZ. A matrix is nine numbers, row by row. */

import type { Chromaticity, Primaries } from '../image-info.ts';
import { WHITE_D50 } from './icc-writer.ts';

type Matrix = readonly number[];
type Vector = readonly [number, number, number];

/** Cone responses of the Bradford method (ICC.1:2022, annex E). */
const BRADFORD: Matrix = [0.8951, 0.2664, -0.1614, -0.7502, 1.7135, 0.0367, 0.0389, -0.0685, 1.0296];

/** Calculates the matrix from linear RGB to XYZ, adapted to the white of profiles, D50. */
export function rgbToXyzD50({ red, green, blue, white }: Primaries): Matrix {
  const [x, y, z] = tristimulus(white);
  const whiteXyz: Vector = [x / y, 1, z / y];
  const unscaled = transpose([red, green, blue].flatMap(tristimulus));
  const scale = apply(invert(unscaled), whiteXyz);
  const native = unscaled.map((value, at) => value * (scale[at % 3] as number));
  return multiply(adaptation(whiteXyz), native);
}

/** CIE XYZ of a chromaticity, up to a factor. */
function tristimulus([x, y]: Chromaticity): Vector {
  return [x, y, 1 - x - y];
}

function adaptation(white: Vector): Matrix {
  const from = apply(BRADFORD, white);
  const to = apply(BRADFORD, WHITE_D50);
  const [l, m, s] = to.map((cone, at) => cone / (from[at] as number)) as [number, number, number];
  return multiply(invert(BRADFORD), multiply([l, 0, 0, 0, m, 0, 0, 0, s], BRADFORD));
}

export function apply(matrix: Matrix, [x, y, z]: Vector): Vector {
  const row = (at: number): number =>
    (matrix[at] as number) * x + (matrix[at + 1] as number) * y + (matrix[at + 2] as number) * z;
  return [row(0), row(3), row(6)];
}

export function multiply(a: Matrix, b: Matrix): Matrix {
  const columns = transpose(b);
  return transpose([0, 3, 6].flatMap((at) => apply(a, columns.slice(at, at + 3) as unknown as Vector)));
}

function transpose(matrix: Matrix): Matrix {
  return [0, 3, 6, 1, 4, 7, 2, 5, 8].map((at) => matrix[at] as number);
}

/** Inverts a matrix. The result is not finite if the primaries are on one line. */
export function invert(matrix: Matrix): Matrix {
  const [a, b, c, d, e, f, g, h, i] = matrix as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const cofactors = [
    e * i - f * h,
    c * h - b * i,
    b * f - c * e,
    f * g - d * i,
    a * i - c * g,
    c * d - a * f,
    d * h - e * g,
    b * g - a * h,
    a * e - b * d,
  ];
  const determinant =
    a * (cofactors[0] as number) + b * (cofactors[3] as number) + c * (cofactors[6] as number);
  return cofactors.map((value) => value / determinant);
}
