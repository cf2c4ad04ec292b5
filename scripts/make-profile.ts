/**
 * @module Writes `assets/srgb.icc`: sRGB as a small ICC v4 profile with three primaries and one
 * curve, as a table. Values: IEC 61966-2-1, with the primaries adapted to D50 by the Bradford
 * method, as ICC.1:2022 requires.
 */
import { writeFileSync } from 'node:fs';
import { sampledCurve, writeProfile, xyz } from '../src/images/colour/icc-writer.ts';
import { uint32 } from './fixtures/boxes.ts';

const BRADFORD_D65_TO_D50 = [
  1.04788, 0.02292, -0.05022, 0.02959, 0.99048, -0.01707, -0.00925, 0.01508, 0.75168,
];
/** Parameters g, a, b, c, d of the curve. */
const CURVE = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045];

/** The matrix as s15Fixed16ArrayType (ICC.1:2022, section 10.22): numbers with 16 binary places. */
const chad = Buffer.concat([
  Buffer.from('sf32\0\0\0\0', 'latin1'),
  uint32(...BRADFORD_D65_TO_D50.map((value) => Math.round(value * 65_536) >>> 0)),
]);
const curve = sampledCurve(CURVE);
writeFileSync(
  new URL('../assets/srgb.icc', import.meta.url),
  writeProfile('sRGB', [
    ['chad', chad],
    ['rXYZ', xyz([0.43607, 0.22249, 0.01392])],
    ['gXYZ', xyz([0.38515, 0.71687, 0.09708])],
    ['bXYZ', xyz([0.14307, 0.06061, 0.7141])],
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ]),
);
