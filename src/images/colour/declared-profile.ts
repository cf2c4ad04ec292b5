/**
 * @module Generates an ICC profile for colours that a file declares by numbers, because the tools use only profiles.
 */

import { setImmediate } from 'node:timers/promises';
import type { DeclaredColour, HdrTransfer, Primaries } from '../image-info.ts';
import { BT709_PRIMARIES, BT2020_PRIMARIES, SRGB_CURVE } from './code-points.ts';
import { lookupTable, type ProfileTag, parametricCurve, writeProfile, xyz } from './icc-writer.ts';
import { apply, invert, multiply, rgbToXyzD50 } from './primaries.ts';
import { createToneMapping, decodeSignal } from './tone-mapping.ts';

/**
 * Grid points per channel of the table for PQ and HLG. More would have no effect: Little CMS, which the tools use,
 * samples every table at 33 points.
 */
const GRID_POINTS = 33;

/** The last profile. Files of one request often declare the same colours. */
let latest: { readonly key: string; readonly profile: Promise<Buffer> } | undefined;

/** Generates the profile of declared colours. */
export function declaredProfile(colour: DeclaredColour): Promise<Buffer> {
  const key = JSON.stringify(colour);
  if (latest?.key !== key) latest = { key, profile: makeProfile(colour) };
  return latest.profile;
}

async function makeProfile({ primaries, transfer }: DeclaredColour): Promise<Buffer> {
  const tags = 'hdr' in transfer ? await hdrTags(primaries, transfer) : curveTags(primaries, transfer.curve);
  return writeProfile('Declared colours', tags);
}

function curveTags(primaries: Primaries, parameters: readonly number[]): ProfileTag[] {
  const matrix = rgbToXyzD50(primaries);
  const column = (at: number): Buffer => xyz([0, 3, 6].map((row) => matrix[row + at] as number));
  const curve = parametricCurve(parameters);
  return [
    ['rXYZ', column(0)],
    ['gXYZ', column(1)],
    ['bXYZ', column(2)],
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ];
}

/**
 * Creates a table of the sRGB values that show each signal on a standard display, followed by the curve and matrix of
 * sRGB. Yields to the event loop after each slice.
 */
async function hdrTags(primaries: Primaries, transfer: HdrTransfer): Promise<ProfileTag[]> {
  const wideToXyz = rgbToXyzD50(BT2020_PRIMARIES);
  const srgbToXyz = rgbToXyzD50(BT709_PRIMARIES);
  const toWide = multiply(invert(wideToXyz), rgbToXyzD50(primaries));
  const toSrgb = multiply(invert(srgbToXyz), wideToXyz);
  const mapTone = createToneMapping(transfer);
  const light = Array.from({ length: GRID_POINTS }, (_, at) =>
    decodeSignal(transfer, at / (GRID_POINTS - 1)),
  );
  const values = new Uint16Array(GRID_POINTS ** 3 * 3);
  let at = 0;
  for (const red of light) {
    for (const green of light) {
      for (const blue of light) {
        const shown = apply(toSrgb, mapTone(apply(toWide, [red, green, blue])));
        for (const channel of shown) {
          values[at] = Math.round(encodeSrgb(channel) * 65_535);
          at += 1;
        }
      }
    }
    await setImmediate();
  }
  return [['A2B0', lookupTable({ points: GRID_POINTS, values, curve: SRGB_CURVE, matrix: srgbToXyz })]];
}

/** Converts light to sRGB's encoding (IEC 61966-2-1), limited to 0 to 1. */
function encodeSrgb(light: number): number {
  if (light <= 0.003_130_8) return 12.92 * Math.max(0, light);
  return Math.min(1, 1.055 * light ** (1 / 2.4) - 0.055);
}
