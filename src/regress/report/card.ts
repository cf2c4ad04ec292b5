/** @module The part of the HTML report that shows one finding. */
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import { formatBytes, shellWords } from '../../text.ts';
import type { Row } from '../recording.ts';
import type { Finding } from '../verdict.ts';
import { formatNumber } from './format.ts';
import type { FindingImages, ReportImage } from './images.ts';
import { html, type Markup } from './markup.ts';

/** Renders a finding: verdict, reasons, measurements, images and commands. */
export function findingCard(finding: Finding, pictures: FindingImages | undefined): Markup {
  const { image, case: name, verdict, reasons, remarks, before, after } = finding;
  const kinds = [...new Set(reasons.map(({ kind }) => kind))].join(' ');
  const input = /\.([^./]+)$/.exec(image)?.[1]?.toLowerCase() ?? '';
  const format = (after ?? before)?.format ?? '';
  return html`<article class="finding ${pictures?.difference ? 'whole' : ''}" tabindex="-1" data-verdict="${verdict}" data-case="${name}" data-format="${format}" data-input="${input}" data-kinds="${kinds}" data-text="${`${image} ${name} ${reasons.map(({ text }) => text).join(' ')}`.toLowerCase()}">
<header><span class="verdict ${verdict}">${verdict}</span><h2>${image} <span class="arrow">→</span> <span class="case">${name}</span></h2></header>
<div class="body">
${reasons.length > 0 && html`<ul class="reasons">${reasons.map(({ kind, text }) => html`<li><b>${kind}</b> ${text}</li>`)}</ul>`}
${remarks.length > 0 && html`<ul class="remarks">${remarks.map((remark) => html`<li>${remark}</li>`)}</ul>`}
${measurements(finding)}
${pictures && view(pictures, finding)}
${commands(before, after)}
</div>
</article>
`;
}

/** Lists file sizes, times and differences. */
function measurements({ before, after, difference, distance }: Finding): Markup {
  const [one, other] = [before?.result, after?.result];
  const rows: (readonly [string, string])[] = [
    ...(one && other ? [['bytes', `${formatBytes(one.bytes)} → ${formatBytes(other.bytes)}`] as const] : []),
    ...(one?.ms && other?.ms ? [['time', `${one.ms} → ${other.ms} ms`] as const] : []),
    ...(difference
      ? [
          ['PSNR', `${formatNumber(difference.psnr, 1)} dB`] as const,
          ['SSIM', difference.ssim === undefined ? '–' : difference.ssim.toFixed(4)] as const,
          ['worst block', `${difference.patch.toFixed(1)} of 255`] as const,
        ]
      : []),
    ...(distance
      ? [
          ['mean colour', `${distance.means} of 255`] as const,
          ['sharpness', `${(distance.sharpness * 100).toFixed(1)}%`] as const,
        ]
      : []),
  ];
  if (rows.length === 0) return html``;
  return html`<dl class="figures">${rows.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Renders the images: with slider and difference if both are full-size, otherwise side by side. */
function view({ before, after, difference, factor, frames, spot }: FindingImages, finding: Finding): Markup {
  const { image, difference: measured } = finding;
  if (difference && before && after) {
    const frame = frames > 1 && measured;
    return html`<div class="pictures">
<figure class="slide"><div class="stage" style="--split:50%">${imageTag(after, 'after', `${image}, after`)}${imageTag(before, 'before', `${image}, before`)}<span class="divider" aria-hidden="true"></span></div>
<figcaption><span>before</span><input type="range" min="0" max="100" value="50" aria-label="Position of the divider between before and after"><span>after</span></figcaption></figure>
<figure>${imageTag(difference, '', `${image}, difference, ${factor} times brighter`)}<figcaption>difference × ${factor}${frame && `, of ${finding.after?.format === 'pdf' ? 'page' : 'frame'} ${frame.frame + 1}`}</figcaption></figure>
${
  spot &&
  html`<figure class="spot"><div>${(['before', 'after', 'difference'] as const).map((side) =>
    imageTag(spot[side], 'pixels', `${image}, area that differs most, ${side}`),
  )}</div><figcaption>area that differs most, × 4: before, after, difference</figcaption></figure>`
}
</div>`;
  }
  if (!before && !after) return html``;
  return html`<div class="pictures beside">${[
    before
      ? html`<figure>${imageTag(before, '', `${image}, before`)}<figcaption>before</figcaption></figure>`
      : missing(finding.before, 'before'),
    after
      ? html`<figure>${imageTag(after, '', `${image}, after`)}<figcaption>after</figcaption></figure>`
      : missing(finding.after, 'after'),
  ]}</div>`;
}

/** Renders a placeholder that states why an image is missing. */
function missing(row: Row | undefined, side: string): Markup {
  const reason = !row
    ? 'no result'
    : row.refused
      ? `${row.refused.status}: ${row.refused.message}`
      : 'only the fingerprint was kept';
  return html`<figure class="none"><p>${reason}</p><figcaption>${side}</figcaption></figure>`;
}

function imageTag({ src, width, height }: ReportImage, kind: string, alt: string): Markup {
  return html`<img class="${kind}" src="${src}" width="${width}" height="${height}" alt="${alt}" draggable="false">`;
}

/**
 * Renders the shell commands of the conversion. They run in the folder of images; `assets/` is relative to imagemill's
 * repository.
 */
function commands(before: Row | undefined, after: Row | undefined): Markup {
  const [one, other] = [before, after].map((row) => script(row));
  if (!one && !other) return html``;
  const changed = one !== other;
  return html`<details class="commands"><summary>Command${changed && ' (changed)'}</summary>
${changed && one && html`<p>before</p><pre><code>${one}</code></pre>`}
${changed && one && other && html`<p>after</p>`}<pre><code>${other || one}</code></pre></details>`;
}

/** Formats the commands of a row as a shell script. */
function script(row: Row | undefined): string {
  if (!row || row.commands.length === 0) return '';
  if (row.commands[0]?.startsWith('curl ')) return row.commands.join('\n');
  return [shellWords(['cp', '--', row.image, INPUT_FILE]), ...row.commands].join('\n');
}
