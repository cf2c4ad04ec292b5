/** @module Colours declared by code points (ITU-T H.273, tables 2 and 3), as in `nclx` of AVIF and `cICP` of PNG. */

import type { DeclaredColour, ImageInfo, Primaries, Transfer } from '../image-info.ts';

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
export const BT2020_PRIMARIES: Primaries = {
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
export const SRGB_CURVE = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.040_45];

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
/** Transfers that define the encoding of a camera, but no display: BT.709, BT.601, BT.1361 and BT.2020. */
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
  if (transfer === PQ) return { hdr: 'pq', ...(peak !== undefined && { peak }) };
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
