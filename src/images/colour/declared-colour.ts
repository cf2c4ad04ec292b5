/**
 * @module Colours that a file declares by numbers: the code points of AVIF and PNG (`nclx` and
 * `cICP`; ITU-T H.273, tables 2 and 3), and the ICC profile of such colours, because the tools use
 * only profiles.
 */
import { setImmediate } from 'node:timers/promises';
import type { DeclaredColour, HdrTransfer, ImageInfo, Primaries, Transfer } from '../image-info.ts';
import {
  apply,
  invert,
  lookupTable,
  multiply,
  type ProfileTag,
  rgbToXyzD50,
  sampledCurve,
  transpose,
  type Vector,
  writeProfile,
  xyz,
} from './icc-writer.ts';

const D65 = [0.3127, 0.329] as const;
const ILLUMINANT_C = [0.31, 0.316] as const;

/** Primaries of BT.709 and sRGB. */
export const BT709_PRIMARIES: Primaries = {
  red: [0.64, 0.33],
  green: [0.3, 0.6],
  blue: [0.15, 0.06],
  white: D65,
};
/** Primaries of BT.2020 and BT.2100. */
const BT2020_PRIMARIES: Primaries = {
  red: [0.708, 0.292],
  green: [0.17, 0.797],
  blue: [0.131, 0.046],
  white: D65,
};
const SMPTE_170M: Primaries = { red: [0.63, 0.34], green: [0.31, 0.595], blue: [0.155, 0.07], white: D65 };
const P3 = { red: [0.68, 0.32], green: [0.265, 0.69], blue: [0.15, 0.06] } as const;

const PRIMARIES: Readonly<Record<number, Primaries>> = {
  1: BT709_PRIMARIES,
  4: { red: [0.67, 0.33], green: [0.21, 0.71], blue: [0.14, 0.08], white: ILLUMINANT_C },
  5: { red: [0.64, 0.33], green: [0.29, 0.6], blue: [0.15, 0.06], white: D65 },
  6: SMPTE_170M,
  7: SMPTE_170M,
  8: { red: [0.681, 0.319], green: [0.243, 0.692], blue: [0.145, 0.049], white: ILLUMINANT_C },
  9: BT2020_PRIMARIES,
  10: { red: [1, 0], green: [0, 1], blue: [0, 0], white: [1 / 3, 1 / 3] },
  11: { ...P3, white: [0.314, 0.351] },
  12: { ...P3, white: D65 },
  22: { red: [0.63, 0.34], green: [0.295, 0.605], blue: [0.155, 0.077], white: D65 },
};

/** Curve of sRGB; parameters as in {@link Transfer}. */
const SRGB_CURVE = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.040_45];

/** Creates the transfer of a pure power. */
export const powerCurve = (gamma: number): Transfer => ({ curve: [gamma, 1, 0, 0, 0] });

const SRGB: Transfer = { curve: SRGB_CURVE };

const TRANSFERS: Readonly<Record<number, Transfer>> = {
  4: powerCurve(2.2),
  5: powerCurve(2.8),
  7: { curve: [1 / 0.45, 1 / 1.1115, 0.1115 / 1.1115, 1 / 4, 0.0912] },
  8: powerCurve(1),
  13: SRGB,
  17: { curve: [2.6, (52.37 / 48) ** (1 / 2.6), 0, 0, 0] },
  18: { hdr: 'hlg' },
};
/** Transfers of a camera that define no display: BT.709, BT.601, BT.1361 and BT.2020. */
const CAMERA_TRANSFERS = [1, 6, 11, 12, 14, 15];

const UNSPECIFIED = 2;
const PQ = 16;

/** Code points of a file. */
export interface CodePoints {
  readonly primaries: number;
  readonly transfer: number;
  /** Display transfer for code points that define only a camera. Default: sRGB. */
  readonly screen?: Transfer;
  /** Peak luminance in cd/m², if the file states one. Applies to PQ. */
  readonly peak?: number | undefined;
}

/** Looks up code points. Unspecified ones mean sRGB. Returns undefined for reserved ones. */
export function colourOf({
  primaries,
  transfer,
  screen = SRGB,
  peak,
}: CodePoints): DeclaredColour | undefined {
  const foundPrimaries = primaries === UNSPECIFIED ? BT709_PRIMARIES : PRIMARIES[primaries];
  const foundTransfer = CAMERA_TRANSFERS.includes(transfer) ? screen : transferOf(transfer, peak);
  return foundPrimaries && foundTransfer && { primaries: foundPrimaries, transfer: foundTransfer };
}

function transferOf(transfer: number, peak: number | undefined): Transfer | undefined {
  if (transfer === UNSPECIFIED) return SRGB;
  if (transfer === PQ) return { hdr: 'pq', peak };
  return TRANSFERS[transfer];
}

/** Returns the properties of an image with declared colours. Its profile is generated later. */
export function declared(declaredColour: DeclaredColour): Pick<ImageInfo, 'profile' | 'declaredColour'> {
  return { profile: 'other', declaredColour };
}

/** Returns whether declared colours are sRGB, so that there is nothing to convert. */
export function isSrgbColour({ primaries, transfer }: DeclaredColour): boolean {
  return primaries === BT709_PRIMARIES && transfer === SRGB;
}

/**
 * Grid points per channel of the table for PQ and HLG. More would have no effect: Little CMS, which
 * the tools use, samples every table at 33 points.
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
  const [red, green, blue] = transpose(rgbToXyzD50(primaries));
  const curve = sampledCurve(parameters);
  return [
    ['rXYZ', xyz(red)],
    ['gXYZ', xyz(green)],
    ['bXYZ', xyz(blue)],
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ];
}

/**
 * Creates a table of the sRGB values that show each signal on a standard display, followed by the
 * curve and matrix of sRGB. Yields to the event loop after each slice.
 */
async function hdrTags(primaries: Primaries, transfer: HdrTransfer): Promise<ProfileTag[]> {
  const wideToXyz = rgbToXyzD50(BT2020_PRIMARIES);
  const srgbToXyz = rgbToXyzD50(BT709_PRIMARIES);
  const toWide = multiply(invert(wideToXyz), rgbToXyzD50(primaries));
  const toSrgb = multiply(invert(srgbToXyz), wideToXyz);
  const mapTone = createToneMapping(transfer);
  const light = Array.from({ length: GRID_POINTS }, (_, at) =>
    (transfer.hdr === 'pq' ? decodePq : decodeHlg)(at / (GRID_POINTS - 1)),
  );
  const values = new Uint16Array(GRID_POINTS ** 3 * 3);
  let at = 0;
  for (const red of light) {
    for (const green of light) {
      for (const blue of light) {
        const shown = apply(toSrgb, mapTone(apply(toWide, [red, green, blue])));
        for (const channel of shown) {
          values[at] = Math.round(encodeSrgb(Math.min(1, Math.max(0, channel))) * 65_535);
          at += 1;
        }
      }
    }
    await setImmediate();
  }
  return [['A2B0', lookupTable({ points: GRID_POINTS, values, curve: SRGB_CURVE, matrix: srgbToXyz })]];
}

/** Converts linear light to sRGB's gamma-encoded scale (IEC 61966-2-1). */
export function encodeSrgb(light: number): number {
  return light <= 0.003_130_8 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
}

/** Luminance of reference white in cd/m² (BT.2408, section 2.1). */
const REFERENCE_WHITE = 203;
/** Peak luminance in cd/m² of the nominal HLG display, and of a PQ image that states none. */
const DEFAULT_PEAK = 1000;
/** Luminance of the PQ signal 1 in cd/m² (SMPTE ST 2084). */
const PQ_MAX = 10_000;
const LUMINANCE: Vector = [0.2627, 0.678, 0.0593];
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
function applySystemGamma(scene: Vector): Vector {
  const luminance = scene.reduce((sum, value, at) => sum + value * (LUMINANCE[at] as number), 0);
  const scale = (Math.max(luminance, 0) ** (HLG_GAMMA - 1) * DEFAULT_PEAK) / REFERENCE_WHITE;
  return [scene[0] * scale, scene[1] * scale, scene[2] * scale];
}

/**
 * Creates the function that maps decoded light in BT.2020 primaries to light from 0 to 1 on a
 * standard display. Channels can be outside of this range if the display cannot show the colour.
 */
function createToneMapping({ hdr, peak = DEFAULT_PEAK }: HdrTransfer): (light: Vector) => Vector {
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
 * Creates the function from the largest channel to the factor of all channels. Up to reference
 * white the factor is constant; above it, the light follows a quadratic Bézier curve from the knee
 * to the peak.
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
