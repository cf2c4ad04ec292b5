/**
 * @module Maps `quality` to the scales of other encoders, so that it means the same visible quality as in WebP. Pure.
 * bench/README.md describes the measurements.
 */

/** Rows of `quality` and the encoder's value. Values between two rows are interpolated. */
export type QualityTable = readonly (readonly [quality: number, value: number])[];

/** Quantizer of libaom, 0 (best) to 63. */
export const AVIF_LEVELS: QualityTable = [
  [1, 51.9],
  [5, 47.6],
  [10, 44.4],
  [20, 40],
  [30, 36.9],
  [40, 33.9],
  [50, 31],
  [60, 28.8],
  [70, 26.2],
  [75, 25.1],
  [80, 21.1],
  [85, 16.7],
  [90, 11],
  [95, 6.3],
  [100, 3.5],
];

/** Butteraugli distance of libjxl, 0 (lossless) to 25. */
export const JXL_DISTANCES: QualityTable = [
  [1, 17],
  [5, 11.8],
  [10, 9],
  [20, 6.2],
  [30, 4.5],
  [40, 3.4],
  [50, 2.94],
  [60, 2.4],
  [70, 2.05],
  [75, 1.85],
  [80, 1.55],
  [85, 1.25],
  [90, 0.95],
  [95, 0.65],
  [99, 0.5],
  [100, 0],
];

/** Returns the encoder's value for a quality of 1 to 100. */
export function valueAt(table: QualityTable, quality: number): number {
  const next = Math.max(
    1,
    table.findIndex(([from]) => quality <= from),
  );
  const [[low, lowValue], [high, highValue]] = table.slice(next - 1, next + 1) as [
    readonly [number, number],
    readonly [number, number],
  ];
  return lowValue + ((quality - low) / (high - low)) * (highValue - lowValue);
}
