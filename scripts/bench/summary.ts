/** @module Summarizes all rows in the figures that the README quotes. */
import { geometricMean, overCommandLine, overSharp, type Row, spread } from './report.ts';

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
  const moving = sources.filter(({ image }) => image.includes('animation'));
  const usual = sources.filter((row) => !wide.includes(row) && !moving.includes(row));
  const alone = rows.filter(({ clients }) => clients === 1);
  return [
    '## Summary',
    list([
      ...sharpLines(
        'Conversions per second with 8 clients relative to the sharp server, full size, from 0.75 MP',
        full,
      ),
      ...sharpLines('The same at 300 px, photos of 0.75 and 3 MP', small),
      ...sharpLines('The same, 320×240 JPEG to webp and jpg', tiny),
      ...sharpLines(
        'Sources in the sizes that people send, to 300 px JPEG',
        usual.filter(({ side }) => side === 300),
      ),
      ...sharpLines(
        'The same to 1200 px WebP',
        usual.filter(({ side }) => side === 1200),
      ),
      ...sharpLines('The same of Display P3 JPEGs, to both and whole to WebP', wide),
      ...sharpLines('An animation of 60 frames to WebP, whole and halved', moving),
      ...sharpLines('8 requests at a time, each from a different address', crowd),
      ...sharpLines(
        'The same conversions, all from one address',
        at8.filter((row) => crowd.some((other) => isSamePair(row, other))),
      ),
      ...lineLines(
        'Median latency with 1 client relative to the command line, below 1 MP',
        alone.filter(({ pixels }) => pixels < 1_000_000),
      ),
      ...lineLines(
        'The same, from 1 MP',
        alone.filter(({ pixels }) => pixels >= 1_000_000),
      ),
    ]),
  ];
}

function isSamePair(a: Row, b: Row): boolean {
  return a.image === b.image && a.format === b.format && a.side === b.side;
}

const list = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n');

function sharpLines(label: string, rows: readonly Row[]): string[] {
  return line(label, rows, (row) => overSharp(row)?.median);
}

function lineLines(label: string, rows: readonly Row[]): string[] {
  return line(label, rows, (row) => overCommandLine(row)?.median);
}

function line(label: string, rows: readonly Row[], getRatio: (row: Row) => number | undefined): string[] {
  const found = rows.flatMap((row) => {
    const ratio = getRatio(row);
    return ratio === undefined
      ? []
      : [{ ratio, name: `${row.image} → ${row.format}${row.side ? ` ${row.side} px` : ''}` }];
  });
  if (found.length === 0) return [];
  const { least, most } = spread(found.map(({ ratio }) => ratio));
  const nameOf = (value: number): string => found.find(({ ratio }) => ratio === value)?.name ?? '';
  const mean = geometricMean(found.map(({ ratio }) => ratio)).toFixed(2);
  return [
    `${label}: geometric mean ${mean} of ${found.length} pairs, from ${least.toFixed(2)} (${nameOf(least)}) to ${most.toFixed(2)} (${nameOf(most)}).`,
  ];
}
