/** @module Bar chart as SVG: processor time per conversion, on a logarithmic scale. */
import { labelOf, type ServiceTime } from './service-times.ts';

const ROW_HEIGHT = 18;
const LEFT = 210;
const WIDTH = 640;
const TOP = 48;
/** Ends of the scale, in ms. */
const [MIN_MS, MAX_MS] = [1, 2000];

/** Renders the conversions, with the cheapest first. */
export function plot(times: readonly ServiceTime[], title: string): string {
  const sorted = [...times].sort((one, other) => one.cpuMs - other.cpuMs);
  const height = TOP + sorted.length * ROW_HEIGHT + 16;
  const lines = [1, 10, 100, 1000].map(
    (ms) =>
      `<line x1="${x(ms)}" x2="${x(ms)}" y1="${TOP - 6}" y2="${height - 12}" stroke="#ddd"/>
<text x="${x(ms)}" y="${TOP - 12}" text-anchor="middle">${ms} ms</text>`,
  );
  const bars = sorted.map((time, at) => {
    const y = TOP + at * ROW_HEIGHT;
    const value = time.cpuMs.toFixed(time.cpuMs < 10 ? 1 : 0);
    return `<text x="${LEFT - 8}" y="${y + 11}" text-anchor="end">${labelOf(time)}</text>
<rect x="${LEFT}" y="${y + 2}" width="${x(time.cpuMs) - LEFT}" height="11" fill="#2a6f97"/>
<text x="${x(time.cpuMs) + 6}" y="${y + 11}">${value}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH + 60}" height="${height}" font-family="sans-serif" font-size="11" fill="#222">
<title>${title}</title><rect width="100%" height="100%" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="bold">${title}</text>
${lines.join('\n')}
${bars.join('\n')}
</svg>
`;
}

/** Returns the x coordinate in px of a time, clamped to the scale. */
function x(ms: number): number {
  const clamped = Math.max(MIN_MS, Math.min(MAX_MS, ms));
  return Math.round(LEFT + (Math.log(clamped / MIN_MS) / Math.log(MAX_MS / MIN_MS)) * (WIDTH - LEFT));
}
