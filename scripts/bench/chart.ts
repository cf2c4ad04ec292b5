/**
 * @module Draws the conversions per second beside the sharp server as bars: an SVG for documents.
 */
import { OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { geometricMean } from '../statistics.ts';
import { overSharp, type Row } from './report.ts';

const WIDTH = 720;
/** Place of the bars, from the left. */
const LEFT = 250;
/** Width of a bar of 1, the speed of sharp. */
const UNIT = 220;
const [LINE, BAR] = [26, 16];
const TOP = 44;

/** Kinds of sources by the start of their names, in the order of the chart. */
const SOURCES = [
  ['jpeg P3', 'JPEG in Display P3'],
  ['jpeg screen', 'JPEG of a screen'],
  ['jpeg', 'JPEG'],
  ['png', 'PNG'],
  ['tiff', 'TIFF'],
  ['webp', 'WebP'],
  ['avif', 'AVIF'],
  ['gif', 'GIF animation'],
] as const;

const STYLE = `text { font: 13px system-ui, sans-serif; fill: #1f2328 } .bar { fill: #2f6f4f } .faster { fill: #1f9d61 } .sharp { stroke: #59636e; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #4f9d77 } .faster { fill: #3fcf8e } .sharp { stroke: #9198a1 } }`;

/**
 * Draws the geometric mean of each kind of source, result and size, with 8 clients of one address.
 */
export function chart(rows: readonly Row[], title: string): string {
  const groups = Map.groupBy(
    rows.filter(({ clients, crowd }) => clients === 8 && !crowd),
    ({ image, format, side }) => {
      const [, source] = SOURCES.find(([start]) => image.startsWith(start)) ?? [];
      return (
        source && `${source} → ${OUTPUTS[format as OutputType].label}, ${side ? `${side} px` : 'full size'}`
      );
    },
  );
  groups.delete(undefined);
  const bars = [...groups].flatMap(([label, group]) => {
    const ratios = group.flatMap((row) => overSharp(row)?.median ?? []);
    return ratios.length > 0 ? [{ label, ratio: geometricMean(ratios) }] : [];
  });
  const height = TOP + bars.length * LINE + 10;
  const lines = bars.map(({ label, ratio }, at) => {
    const y = TOP + at * LINE;
    const end = LEFT + ratio * UNIT;
    return `<text x="${LEFT - 10}" y="${y + 13}" text-anchor="end">${label}</text><rect class="${ratio < 1 ? 'bar' : 'faster'}" x="${LEFT}" y="${y}" width="${(ratio * UNIT).toFixed(1)}" height="${BAR}" rx="2"/><text x="${(end + 6).toFixed(1)}" y="${y + 13}">${ratio.toFixed(2)}</text>`;
  });
  const one = LEFT + UNIT;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
<style>${STYLE}</style>
<text x="0" y="15" font-weight="600">${title}</text>
<text x="${one}" y="34" text-anchor="middle">sharp = 1</text>
<line class="sharp" x1="${one}" x2="${one}" y1="40" y2="${height - 6}"/>
${lines.join('\n')}
</svg>
`;
}
