/**
 * @module Generates an ICC profile for colours that a file declares by numbers, because the tools use only profiles.
 */
import { setImmediate } from 'node:timers/promises';
import type { DeclaredColour, HdrTransfer, Primaries } from '../image-info.ts';
import { BT709_PRIMARIES, BT2020_PRIMARIES, SRGB_CURVE } from './code-points.ts';
import {
  apply,
  invert,
  lookupTable,
  multiply,
  type ProfileTag,
  rgbToXyzD50,
  sampledCurve,
  writeProfile,
  xyz,
} from './icc-writer.ts';

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
  const curve = sampledCurve(parameters);
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

type Rgb = readonly [number, number, number];

/** Luminance of reference white in cd/m² (BT.2408, section 2.1). */
const REFERENCE_WHITE = 203;
/** Peak luminance in cd/m² of the nominal HLG display, and of a PQ image that states none. */
const DEFAULT_PEAK = 1000;
/** Luminance of the PQ signal 1 in cd/m² (SMPTE ST 2084). */
const PQ_MAX = 10_000;
const LUMINANCE: Rgb = [0.2627, 0.678, 0.0593];
/** System gamma of HLG at 1000 cd/m² (BT.2100, table 5). */
const HLG_GAMMA = 1.2;

/** Converts a PQ signal from 0 to 1 to light (SMPTE ST 2084, 5.2). */
function decodePq(signal: number): number {
  const root = signal ** (32 / 2523);
  const light = Math.max(root - 3424 / 4096, 0) / (2413 / 128 - (2392 / 128) * root);
  return (light ** (16_384 / 2610) * PQ_MAX) / REFERENCE_WHITE;
}

const HLG = { a: 0.178_832_77, b: 0.284_668_92, c: 0.559_910_73 };

/** Converts an HLG signal from 0 to 1 to scene light from 0 to 1 (BT.2100, table 5). */
function decodeHlg(signal: number): number {
  return signal <= 0.5 ? signal ** 2 / 3 : (Math.exp((signal - HLG.c) / HLG.a) + HLG.b) / 12;
}

/** Applies the HLG system gamma: converts scene light to the light of a display of 1000 cd/m². */
function applySystemGamma(scene: Rgb): Rgb {
  const luminance = scene.reduce((sum, value, at) => sum + value * (LUMINANCE[at] as number), 0);
  const scale = (Math.max(luminance, 0) ** (HLG_GAMMA - 1) * DEFAULT_PEAK) / REFERENCE_WHITE;
  return [scene[0] * scale, scene[1] * scale, scene[2] * scale];
}

/** Converts one channel of a signal to light. */
function decodeSignal({ hdr }: HdrTransfer, signal: number): number {
  return hdr === 'pq' ? decodePq(signal) : decodeHlg(signal);
}

/**
 * Creates the function that maps decoded light in BT.2020 primaries to light from 0 to 1 on a standard display.
 * Channels can be outside of this range if the display cannot show the colour.
 */
function createToneMapping({ hdr, peak = DEFAULT_PEAK }: HdrTransfer): (light: Rgb) => Rgb {
  const gain = createGain(hdr === 'pq' ? peak : DEFAULT_PEAK);
  return (light) => {
    const shown = hdr === 'hlg' ? applySystemGamma(light) : light;
    const factor = gain(Math.max(...shown));
    return [shown[0] * factor, shown[1] * factor, shown[2] * factor];
  };
}

/** Position of the middle control point between knee and peak. */
const KAPPA = 0.65;

/**
 * Creates the function from the largest channel to the factor of all channels. Up to reference white the factor is
 * constant; above it, the light follows a quadratic Bézier curve from the knee to the peak.
 */
function createGain(peak: number): (largest: number) => number {
  const max = Math.max(peak / REFERENCE_WHITE, 1);
  const white = 1 - 0.5 * Math.min(Math.log(max) / Math.log(DEFAULT_PEAK / REFERENCE_WHITE), 1);
  const middle = { x: 1 - KAPPA + KAPPA / white, y: (1 - KAPPA) * white + KAPPA };
  const curve = { x: bezier(1, middle.x, max), y: bezier(white, middle.y, 1) };
  return (largest) => {
    if (largest <= 1) return white;
    if (largest >= max) return 1 / largest;
    return valueAt(curve.y, positionOf(curve.x, largest)) / largest;
  };
}

/** Coefficients of a quadratic Bézier curve: at² + bt + c. */
interface Quadratic {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

function bezier(from: number, control: number, to: number): Quadratic {
  return { a: from - 2 * control + to, b: 2 * (control - from), c: from };
}

function valueAt({ a, b, c }: Quadratic, t: number): number {
  return (a * t + b) * t + c;
}

/** Solves the curve for its parameter. This form is exact for a = 0, too. */
function positionOf({ a, b, c }: Quadratic, value: number): number {
  return (2 * (value - c)) / (b + Math.sqrt(Math.max(0, b * b + 4 * a * (value - c))));
}
