/** @module Finds the colour space of a PNG from its chunks (W3C PNG, third edition, sections 4.3 and 11.3.2). */
import { BT709_PRIMARIES, colourOf, declared, isSrgbColour, powerCurve } from './colour/declared-colour.ts';
import { rgbToXyzD50 } from './colour/icc-writer.ts';
import {
  type Chromaticity,
  differsFromSrgb,
  type ImageInfo,
  type Primaries,
  type Profile,
} from './image-info.ts';

export interface PngColourChunks {
  readonly cICP?: { readonly primaries: number; readonly transfer: number };
  /** Whether there is an sRGB chunk. */
  readonly sRGB?: boolean;
  readonly cHRM?: Primaries;
  /** Display gamma: 2.2 for the usual value of 0.45455. */
  readonly gAMA?: number;
  /** Peak luminance of the content, in cd/m². */
  readonly cLLI?: number;
  /** Peak luminance of the mastering display, in cd/m². */
  readonly mDCV?: number;
}

/** Display gamma that Chromium uses for BT.709 and similar code points, which define only a camera. */
const VIDEO_SCREEN = powerCurve(2.4);

/**
 * Tolerances within which a PNG is sRGB. Writers round, and state sRGB as a gamma of 2.2, which section 11.3.2.5
 * requires.
 */
const CHROMATICITY_TOLERANCE = 0.005;
const GAMMA_TOLERANCE = 0.05;
const SRGB_GAMMA = 2.2;
/** Range of plausible gammas. */
const MIN_GAMMA = 0.2;
const MAX_GAMMA = 10;

/**
 * Returns the colour space by the precedence of section 4.3: code points, profile, sRGB, primaries with gamma. A gamma
 * without primaries is ignored, as most decoders do, because many files contain a wrong one.
 *
 * @param profile the embedded ICC profile
 */
export function pngColour(
  { cICP, sRGB, cHRM, gAMA, cLLI, mDCV }: PngColourChunks,
  profile: Profile,
): Pick<ImageInfo, 'profile' | 'declaredColour'> {
  const colour = cICP && colourOf({ ...cICP, screen: VIDEO_SCREEN, peak: cLLI || mDCV });
  if (colour) return isSrgbColour(colour) && !differsFromSrgb(profile) ? { profile } : declared(colour);
  if (profile !== 'none' || sRGB || !cHRM || !gAMA) return { profile };
  const isSrgb = isNear(cHRM, BT709_PRIMARIES) && Math.abs(gAMA / SRGB_GAMMA - 1) < GAMMA_TOLERANCE;
  return isSrgb ? { profile } : declared({ primaries: cHRM, transfer: powerCurve(gAMA) });
}

function isNear(some: Primaries, other: Primaries): boolean {
  const near = ([x, y]: Chromaticity, [otherX, otherY]: Chromaticity): boolean =>
    Math.max(Math.abs(x - otherX), Math.abs(y - otherY)) < CHROMATICITY_TOLERANCE;
  return (['red', 'green', 'blue', 'white'] as const).every((name) => near(some[name], other[name]));
}

/** Reads the content of a colour chunk. Chunks that are too short, or contain impossible values, count as absent. */
export function parseColourChunk(name: string, body: Buffer): PngColourChunks {
  return body.length < (LENGTHS[name] ?? Number.POSITIVE_INFINITY) ? {} : (PARSERS[name]?.(body) ?? {});
}

/** Chunks that {@link parseColourChunk} reads, by their length in bytes. */
export const LENGTHS: Readonly<Record<string, number>> = {
  ...{ cICP: 4, sRGB: 1, cHRM: 32, gAMA: 4, cLLI: 8, mDCV: 24 },
};

const PARSERS: Readonly<Record<string, (body: Buffer) => PngColourChunks>> = {
  cICP: (body) => ({ cICP: { primaries: body[0] as number, transfer: body[1] as number } }),
  sRGB: () => ({ sRGB: true }),
  cHRM(body) {
    const at = (index: number): Chromaticity => [
      body.readUInt32BE(index * 8) / 100_000,
      body.readUInt32BE(index * 8 + 4) / 100_000,
    ];
    const primaries = { white: at(0), red: at(1), green: at(2), blue: at(3) };
    return isPossible(primaries) ? { cHRM: primaries } : {};
  },
  gAMA(body) {
    const gamma = 100_000 / body.readUInt32BE(0);
    return gamma >= MIN_GAMMA && gamma <= MAX_GAMMA ? { gAMA: gamma } : {};
  },
  cLLI: (body) => ({ cLLI: body.readUInt32BE(0) / 10_000 }),
  mDCV: (body) => ({ mDCV: body.readUInt32BE(16) / 10_000 }),
};

/** Checks that the primaries are chromaticities, that their triangle has an area, and that a profile can hold them. */
function isPossible(primaries: Primaries): boolean {
  const { red, green, blue, white } = primaries;
  const points = [red, green, blue, white];
  const area = (green[0] - red[0]) * (blue[1] - red[1]) - (blue[0] - red[0]) * (green[1] - red[1]);
  return (
    points.every(([x, y]) => x >= 0 && y >= 0 && x + y <= 1) &&
    Math.abs(area) > MIN_AREA &&
    rgbToXyzD50(primaries)
      .flat()
      .every((value) => Math.abs(value) < MAX_XYZ)
  );
}

/** Smallest area of two triangles of primaries; sRGB has 0.22. */
const MIN_AREA = 0.01;
/** Largest value of an s15Fixed16Number (ICC.1:2022, 4.6). Exceeded by a white to which one kind of cone hardly responds. */
const MAX_XYZ = 32_767;
