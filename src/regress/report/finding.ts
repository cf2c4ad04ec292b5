/** @module The part of the HTML report that shows one finding, with its images as data URLs. */
import { formatBytes } from '../../base/text.ts';
import { formatCopy } from '../../conversion/explain.ts';
import type { Size } from '../../images/image-info.ts';
import { decode, encode } from '../image/codec.ts';
import {
  compositeOver,
  cutDetail,
  DETAIL,
  type DecodedImage,
  type Raster,
  renderDifference,
} from '../image/image.ts';
import type { Recording, Row } from '../record.ts';
import type { Finding } from '../verdict.ts';
import { html, type Markup } from './markup.ts';

interface ReportImage extends Size {
  readonly src: string;
}

/** Maximum side of a full-size image, in pixels. */
const FULL_SIZE_PX = 640;
/** Maximum side of a thumbnail, in pixels. */
const THUMBNAIL_PX = 160;
/** Maximum side to which small images are enlarged, in pixels. */
const ENLARGED_PX = 280;

type FindingImages = Awaited<ReturnType<typeof renderImages>>;

/** @param fullSize true for full-size images with the difference, false for thumbnails */
export async function renderImages(
  { before, after, difference }: Finding,
  recordings: { readonly before: Recording; readonly after: Recording },
  fullSize: boolean,
) {
  const [one, other] = [await load(before, recordings.before), await load(after, recordings.after)];
  const at = difference?.frame ?? 0;
  const [a, b] = [one?.frames[at] ?? one?.frames[0], other?.frames[at] ?? other?.frames[0]];
  const side = fullSize ? FULL_SIZE_PX : THUMBNAIL_PX;
  const factor = factorFor(difference?.max ?? 255);
  const both = fullSize && a && b && a.width === b.width && a.height === b.height && difference;
  return {
    before: a && (await toDataUrl(a, side)),
    after: b && (await toDataUrl(b, side)),
    factor,
    /** Number of frames or pages after the change. */
    frames: other?.frames.length ?? 0,
    // Of images of the same size: their difference, and a detail around the worst block.
    difference: both ? await toDataUrl(renderDifference(a, b, factor), side) : undefined,
    spot: both && enlargement(a) < DETAIL.factor ? await renderDetail(a, b, both.at, factor) : undefined,
  };
}

async function load(row: Row | undefined, recording: Recording): Promise<DecodedImage | undefined> {
  // The file can be missing, or no decoder reads it.
  const read = async (file: Promise<Buffer>, { format }: Row) => decode(await file, format);
  const file = row && recording.open(row);
  return file && read(file, row).catch(() => undefined);
}

/** Returns the power of two, 1 to 64, by which the largest difference becomes bright. */
function factorFor(max: number): number {
  return 2 ** Math.min(6, Math.max(0, Math.floor(Math.log2(255 / Math.max(1, max))) + 1));
}

/** Returns the integer factor, 1 to 8, by which small images are enlarged. */
function enlargement({ width, height }: Raster): number {
  return Math.max(1, Math.min(8, Math.floor(ENLARGED_PX / Math.max(width, height))));
}

async function renderDetail(before: Raster, after: Raster, at: { x: number; y: number }, factor: number) {
  const [one, other] = [cutDetail(before, at), cutDetail(after, at)];
  const enlarge = (raster: Raster) => toDataUrl(raster, FULL_SIZE_PX, DETAIL.factor);
  return {
    before: await enlarge(compositeOver(one, 255)),
    after: await enlarge(compositeOver(other, 255)),
    difference: await enlarge(renderDifference(one, other, factor)),
  };
}

async function toDataUrl(
  raster: Raster,
  maxSide: number,
  enlarge = maxSide < FULL_SIZE_PX ? 1 : enlargement(raster),
): Promise<ReportImage> {
  const { bytes, width, height } = await encode(raster, maxSide, enlarge);
  return { src: `data:image/webp;base64,${bytes.toString('base64')}`, width, height };
}

/** Returns the extension of the input image, by which the report filters. */
export const inputOf = (image: string): string => /\.([^./]+)$/.exec(image)?.[1]?.toLowerCase() ?? '';

/** Renders a finding: verdict, reasons, measurements, images and commands. */
export function findingCard(finding: Finding, pictures: FindingImages | undefined): Markup {
  const { image, case: name, verdict, reasons, remarks, before, after } = finding;
  const kinds = [...new Set(reasons.map(({ kind }) => kind))].join(' ');
  const format = (after ?? before)?.format ?? '';
  return html`<article class="finding ${pictures?.difference ? 'whole' : ''}" tabindex="-1" data-verdict="${verdict}" data-case="${name}" data-format="${format}" data-input="${inputOf(image)}" data-kinds="${kinds}" data-text="${`${image} ${name} ${reasons.map(({ text }) => text).join(' ')}`.toLowerCase()}">
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

function measurements({ before, after, difference, distance }: Finding): Markup {
  const [one, other] = [before?.result, after?.result];
  const rows: [term: string, value: string][] = [];
  if (one && other) rows.push(['bytes', `${formatBytes(one.bytes)} → ${formatBytes(other.bytes)}`]);
  if (one?.ms && other?.ms) rows.push(['time', `${one.ms} → ${other.ms} ms`]);
  if (difference) {
    const { psnr, ssim, patch, max, deltaE } = difference;
    rows.push(
      ['PSNR', `${Number.isFinite(psnr) ? psnr.toFixed(1) : '∞'} dB`],
      ['SSIM', ssim === undefined ? '–' : ssim.toFixed(4)],
      ['worst block', `${patch.toFixed(1)} of 255`],
      ['largest', `${max} of 255`],
      ['ΔE 2000', deltaE.toFixed(2)],
    );
  }
  if (distance) {
    rows.push(['mean colour', `${distance.means} of 255`]);
    rows.push(['sharpness', `${(distance.sharpness * 100).toFixed(1)}%`]);
  }
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
  const figure = (picture: ReportImage | undefined, side: 'before' | 'after') =>
    picture
      ? html`<figure>${imageTag(picture, '', `${image}, ${side}`)}<figcaption>${side}</figcaption></figure>`
      : missing(finding[side], side);
  return html`<div class="pictures beside">${[figure(before, 'before'), figure(after, 'after')]}</div>`;
}

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

/** The commands run in the folder of images; `assets/` is relative to imagemill's repository. */
function commands(before: Row | undefined, after: Row | undefined): Markup {
  const [one, other] = [before, after].map((row) => script(row));
  if (!one && !other) return html``;
  const changed = one !== other;
  return html`<details class="commands"><summary>Command${changed && ' (changed)'}</summary>
${changed && one && html`<p>before</p><pre><code>${one}</code></pre>`}
${changed && one && other && html`<p>after</p>`}<pre><code>${other || one}</code></pre></details>`;
}

function script(row: Row | undefined): string {
  if (!row || row.commands.length === 0) return '';
  if (row.commands[0]?.startsWith('curl ')) return row.commands.join('\n');
  return [formatCopy(row.image), ...row.commands].join('\n');
}
