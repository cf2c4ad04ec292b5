/**
 * @module Bar chart as SVG: conversions per second relative to the sharp server, one bar per pair, on a logarithmic
 * scale.
 */
import { overSharp, type Row } from './report.ts';

const ROW_HEIGHT = 18;
const LEFT = 230;
const WIDTH = 760;
const TOP = 56;
/** Ends of the scale, as ratios. */
const [MIN_RATIO, MAX_RATIO] = [1 / 8, 8];

/** Renders the rows that have a sharp result as an SVG document. */
export function chart(rows: readonly Row[], title: string): string {
  const bars = rows.flatMap((row) => {
    const ratio = overSharp(row);
    return ratio
      ? [{ label: `${row.image} → ${row.format}${row.side ? ` ${row.side} px` : ''}`, ...ratio }]
      : [];
  });
  const height = TOP + bars.length * ROW_HEIGHT + 30;
  const lines = [0.25, 0.5, 1, 2, 4].map(
    (value) =>
      `<line x1="${x(value)}" x2="${x(value)}" y1="${TOP - 8}" y2="${height - 24}" stroke="${value === 1 ? '#333' : '#ddd'}"/>
       <text x="${x(value)}" y="${TOP - 14}" text-anchor="middle">${value}×</text>`,
  );
  const barElements = bars.map(({ label, median, least, most }, at) => {
    const y = TOP + at * ROW_HEIGHT;
    const [from, to] = [Math.min(x(1), x(median)), Math.max(x(1), x(median))];
    const colour = median >= 1 ? '#2a7f62' : '#b5542c';
    return `<text x="${LEFT - 8}" y="${y + 11}" text-anchor="end">${label}</text>
      <rect x="${from}" y="${y + 2}" width="${Math.max(1, to - from)}" height="11" fill="${colour}"/>
      <line x1="${x(least)}" x2="${x(most)}" y1="${y + 7.5}" y2="${y + 7.5}" stroke="#222"/>
      <text x="${Math.max(to, x(most)) + 6}" y="${y + 11}">${median.toFixed(2)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH + 60}" height="${height}" font-family="sans-serif" font-size="11" fill="#222">
<title>${title}</title><rect width="100%" height="100%" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="bold">${title}</text>
${lines.join('\n')}
${barElements.join('\n')}
</svg>
`;
}

/** Returns the x coordinate in px of a ratio, clamped to the scale. */
function x(ratio: number): number {
  const clamped = Math.max(MIN_RATIO, Math.min(MAX_RATIO, ratio));
  return Math.round(
    LEFT + ((Math.log2(clamped) - Math.log2(MIN_RATIO)) / Math.log2(MAX_RATIO / MIN_RATIO)) * (WIDTH - LEFT),
  );
}
