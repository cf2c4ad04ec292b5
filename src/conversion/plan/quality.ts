/**
 * What an encoder's own scale must say, so that `quality` means the same visible quality as in WebP. Pure.
 *
 * Each table has `quality` and the encoder's value; between two rows the value is in proportion. bench/README.md says
 * how they were measured.
 */
export type QualityTable = readonly (readonly [quality: number, value: number])[];

/** The quantizer of libaom, 0 (best) to 63. */
export const AVIF_LEVELS: QualityTable = [
  [1, 50],
  [5, 47.7],
  [10, 44.5],
  [20, 40.1],
  [30, 36.6],
  [40, 33.6],
  [50, 30.8],
  [60, 28.6],
  [70, 26.1],
  [75, 25],
  [80, 19.7],
  [85, 15.1],
  [90, 9.8],
  [95, 5.9],
  [100, 3.5],
];

/** Butteraugli distance of libjxl, 0 (lossless) to 25. */
export const JXL_DISTANCES: QualityTable = [
  [1, 15],
  [5, 11.9],
  [10, 9],
  [20, 6.1],
  [30, 5.05],
  [40, 3.67],
  [50, 3.14],
  [60, 2.65],
  [70, 2.28],
  [75, 2.12],
  [80, 1.75],
  [85, 1.38],
  [90, 1.07],
  [95, 0.7],
  [99, 0.5],
  [100, 0],
];

/** The encoder's value for a quality of 1 to 100. */
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
