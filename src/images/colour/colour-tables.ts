/**
 * @module Converts the colours of a profile of curves and a matrix to sRGB with two tables and a
 * matrix, as Little CMS does with relative intent (ICC.1:2022, F.3). Such a profile has no black
 * other than 0, so that there is no black point to compensate.
 */
import { BT709_PRIMARIES, encodeSrgb } from './declared-colour.ts';
import { readCurve, readPrimaries, readTags } from './icc.ts';
import { invert, type Matrix3, multiply, rgbToXyzD50, transpose } from './icc-writer.ts';

/** Entries of a table. ImageMagick interpolates between them: the error is below 0.1 of 255. */
const ENTRIES = 4096;

/** Classes of profiles of cameras, displays and colour spaces (ICC.1:2022, 7.2.5). */
const CLASSES = ['scnr', 'mntr', 'spac'];
/** Tables of multiProcessElementsType, which Little CMS prefers to curves and a matrix. */
const FLOAT_TABLES = ['D2B0', 'D2B1', 'D2B2', 'D2B3'];

/** Maximum distance of the ends of a curve from 0 and 1. */
const END_TOLERANCE = 1 / 4096;

/**
 * Reads the profile of an RGB image as a table to linear light, a matrix from that to linear light
 * of sRGB, whose values beyond 0 to 1 are clipped afterwards, and a table to the encoding of sRGB.
 * The two tables are images of one row, one after the other: PPM with 16 bits per channel.
 *
 * @returns undefined if the profile has lookup tables, or is of a form that Little CMS may reject
 *   or read in another way: then the tool converts the colours itself
 */
export function readColourTables(profile: Buffer): { images: Buffer; matrix: Matrix3 } | undefined {
  try {
    const isProfile =
      profile.toString('latin1', 36, 40) === 'acsp' && profile.readUInt32BE() <= profile.length;
    if (!isProfile || !CLASSES.includes(profile.toString('latin1', 12, 16))) return undefined;
    const tags = readTags(profile);
    const primaries = readPrimaries(profile);
    if (!primaries || FLOAT_TABLES.some((name) => tags.has(name))) return undefined;
    const light = ['rTRC', 'gTRC', 'bTRC'].map((name) => sampleCurve(tags.get(name)));
    if (!light.every((samples) => samples !== undefined)) return undefined;
    return {
      images: Buffer.concat([toRow(light), srgbTable()]),
      matrix: multiply(invert(rgbToXyzD50(BT709_PRIMARIES)), transpose(primaries)),
    };
  } catch {
    return undefined; // truncated
  }
}

/** Samples a curve. Returns undefined unless it rises from black to white. */
function sampleCurve(tag: Buffer | undefined): number[] | undefined {
  const curve = tag && readCurve(tag);
  const samples = curve && sample(curve);
  const [black = 1] = samples ?? [];
  const white = samples?.at(-1) ?? 0;
  const rises = samples?.every((value, at) => value >= (samples[at - 1] ?? 0));
  return rises && black <= END_TOLERANCE && Math.abs(white - 1) <= END_TOLERANCE ? samples : undefined;
}

let encoded: Buffer | undefined;

/** Returns the table from linear light to sRGB. */
function srgbTable(): Buffer {
  encoded ??= toRow(Array(3).fill(sample(encodeSrgb)));
  return encoded;
}

const sample = (curve: (value: number) => number): number[] =>
  Array.from({ length: ENTRIES }, (_, at) => curve(at / (ENTRIES - 1)));

/** Encodes three channels of values from 0 to 1 as a PPM of one row. */
function toRow(channels: readonly (readonly number[])[]): Buffer {
  const row = Buffer.alloc(ENTRIES * 6);
  channels.forEach((samples, channel) => {
    samples.forEach((value, at) => {
      row.writeUInt16BE(Math.round(Math.min(1, Math.max(0, value)) * 65_535), at * 6 + channel * 2);
    });
  });
  return Buffer.concat([Buffer.from(`P6 ${ENTRIES} 1 65535\n`), row]);
}
