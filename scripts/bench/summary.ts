/** @module Summarizes all rows in the figures that the README quotes. */
import { geometricMean, spread } from '../statistics.ts';
import { labelOf, overCommandLine, overSharp, type Row } from './report.ts';

/** Pixels from which a full-size image counts as large. */
const LARGE = 700_000;

/** Returns the Markdown paragraphs of the summary. */
export function summary(rows: readonly Row[]): string[] {
  const crowd = rows.filter((row) => row.crowd);
  const at8 = rows.filter((row) => row.clients === 8 && !row.crowd);
  const full = at8.filter(({ side, pixels }) => !side && pixels >= LARGE);
  const small = at8.filter(({ side, image }) => side && ['photo 0.75 MP', 'photo 3 MP'].includes(image));
  const tiny = at8.filter(
    ({ image, format, side }) => !side && image === 'photo 320×240' && ['webp', 'jpg'].includes(format),
  );
  const sources = at8.filter(({ image }) => /^(?!photo).*\d×\d/.test(image));
  const wide = sources.filter(({ image }) => image.includes('P3'));
  const moving = sources.filter(({ image }) => image.includes('gif animation'));
  const panning = sources.filter(({ image }) => image.includes('gif panning'));
  const usual = sources.filter((row) => ![...wide, ...moving, ...panning].includes(row));
  const [to300, to1200] = [300, 1200].map((size) => usual.filter(({ side }) => side === size));
  const fromOne = at8.filter((row) => crowd.some((other) => labelOf(other) === labelOf(row)));
  const below = rows.filter(({ clients, pixels }) => clients === 1 && pixels < 1_000_000);
  const above = rows.filter(({ clients, pixels }) => clients === 1 && pixels >= 1_000_000);
  const lines = [
    line('Conversions per second with 8 clients relative to the sharp server, full size, from 0.75 MP', full),
    line('The same at 300 px, photos of 0.75 and 3 MP', small),
    line('The same, 320×240 JPEG to webp and jpg', tiny),
    line('Sources in the sizes that people send, to 300 px JPEG', to300),
    line('The same to 1200 px WebP', to1200),
    line('The same of Display P3 JPEGs, to both and whole to WebP', wide),
    line('An animation of 60 frames to WebP, whole and halved', moving),
    line('An animation of 24 frames in which every pixel changes, the same', panning),
    line('8 requests at a time, each from a different address', crowd),
    line('The same conversions, all from one address', fromOne),
    line('Median latency with 1 client relative to the command line, below 1 MP', below, overCommandLine),
    line('The same, from 1 MP', above, overCommandLine),
  ];
  return ['## Summary', lines.flat().join('\n')];
}

/** Returns an item about the ratios of the rows, or none if no row has one. */
function line(label: string, rows: readonly Row[] = [], ratioOf = overSharp): string[] {
  const found = rows.flatMap((row) => {
    const ratio = ratioOf(row)?.median;
    return ratio === undefined ? [] : [{ ratio, name: labelOf(row) }];
  });
  if (found.length === 0) return [];
  const { least, most } = spread(found.map(({ ratio }) => ratio));
  const named = (value: number): string =>
    `${value.toFixed(2)} (${found.find(({ ratio }) => ratio === value)?.name})`;
  const mean = geometricMean(found.map(({ ratio }) => ratio)).toFixed(2);
  return [
    `- ${label}: geometric mean ${mean} of ${found.length} pairs, from ${named(least)} to ${named(most)}.`,
  ];
}
