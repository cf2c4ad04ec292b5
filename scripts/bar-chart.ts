/** @module Bar charts as SVG, with a logarithmic scale. */

/** A bar. */
export interface Bar {
  readonly label: string;
  /** Values at its ends. */
  readonly from: number;
  readonly to: number;
  readonly colour: string;
  /** Text behind the bar. */
  readonly text: string;
  /** Ends of a line over the bar: minimum and maximum. */
  readonly range?: readonly [least: number, most: number];
}

const ROW_HEIGHT = 18;
const LEFT = 230;
const WIDTH = 760;
const TOP = 56;

/**
 * Renders a chart.
 *
 * @param scale values at the ends, beyond which bars are cut
 * @param ticks values that have a vertical line. That at 1 is dark.
 */
export function barChart(
  title: string,
  bars: readonly Bar[],
  [min, max]: readonly [number, number],
  ticks: readonly number[],
  unit: string,
): string {
  /** Returns the x coordinate in px of a value. */
  const x = (value: number): number => {
    const clamped = Math.max(min, Math.min(max, value));
    return Math.round(LEFT + (Math.log(clamped / min) / Math.log(max / min)) * (WIDTH - LEFT));
  };
  const height = TOP + bars.length * ROW_HEIGHT + 30;
  const lines = ticks.map(
    (value) =>
      `<line x1="${x(value)}" x2="${x(value)}" y1="${TOP - 8}" y2="${height - 24}" stroke="${value === 1 ? '#333' : '#ddd'}"/>
<text x="${x(value)}" y="${TOP - 14}" text-anchor="middle">${value}${unit}</text>`,
  );
  const elements = bars.map(({ label, from, to, colour, text, range }, at) => {
    const y = TOP + at * ROW_HEIGHT;
    const [left, right] = [Math.min(x(from), x(to)), Math.max(x(from), x(to))];
    const [least, most] = (range ?? []).map(x);
    const line = range
      ? `\n<line x1="${least}" x2="${most}" y1="${y + 7.5}" y2="${y + 7.5}" stroke="#222"/>`
      : '';
    return `<text x="${LEFT - 8}" y="${y + 11}" text-anchor="end">${label}</text>
<rect x="${left}" y="${y + 2}" width="${Math.max(1, right - left)}" height="11" fill="${colour}"/>${line}
<text x="${Math.max(right, most ?? 0) + 6}" y="${y + 11}">${text}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH + 60}" height="${height}" font-family="sans-serif" font-size="11" fill="#222">
<title>${title}</title><rect width="100%" height="100%" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="bold">${title}</text>
${[...lines, ...elements].join('\n')}
</svg>
`;
}
