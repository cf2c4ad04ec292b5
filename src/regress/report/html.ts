/** @module The HTML report: a self-contained file that loads nothing from other hosts. */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatBytes, formatChange, plural } from '../../base/text.ts';
import { ASSETS_DIR } from '../../folders.ts';
import type { Recording } from '../record.ts';
import { bySeverity, type Finding, isFailure, type ReasonKind, VERDICT_NAMES, VERDICTS } from '../verdict.ts';
import { findingCard, inputOf, renderImages } from './finding.ts';
import { html, Markup } from './markup.ts';
import { countVerdicts, summarize } from './summary.ts';

const STYLES = ['style/colours.css', 'style/slider.css', 'report/style.css'];

/**
 * Maximum number of findings with full-size images. The others that differ have thumbnails. With
 * these limits, the report of 93 photos in 9 cases has 8 MB.
 */
const MAX_FULL_SIZE = { changed: 40, similar: 10 };
const MAX_WITH_IMAGES = 400;

/** Text with which every HTML report starts. */
export const HTML_START = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"`;

/** Renders findings as an HTML page. */
export async function htmlReport(
  findings: readonly Finding[],
  before: Recording,
  after: Recording,
): Promise<string> {
  const style = (await Promise.all(STYLES.map(readAsset))).join('\n');
  const script = await readAsset('report/script.js');
  const sorted = bySeverity(findings);
  const changed = sorted.filter(isFailure);
  const similar = sorted.filter(({ verdict }) => verdict === 'similar');
  const fullSize = new Set([
    ...changed.slice(0, MAX_FULL_SIZE.changed),
    ...similar.slice(0, MAX_FULL_SIZE.similar),
  ]);
  const cards: Markup[] = [];
  for (const [index, finding] of sorted.entries()) {
    const differs = isFailure(finding) || finding.verdict === 'similar';
    const pictures =
      differs && index < MAX_WITH_IMAGES
        ? await renderImages(finding, { before, after }, fullSize.has(finding))
        : undefined;
    cards.push(findingCard(finding, pictures));
  }
  const policy = `default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-${hash('sha256', script, 'base64')}'`;
  return html`${new Markup(HTML_START)} content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>imagemill regression report</title>
<style>${new Markup(style)}</style>
</head>
<body>
${overview(sorted, before, after, fullSize.size)}
<main id="findings">
${cards}
<p class="nothing" hidden>No results match these filters.</p>
</main>
<script>${new Markup(script)}</script>
</body>
</html>
`.text;
}

const readAsset = (name: string): Promise<string> => readFile(join(ASSETS_DIR, name), 'utf8');

/** Kinds of change that are not visible in the image. */
const INVISIBLE: readonly ReasonKind[] = ['bytes', 'time', 'metadata', 'set'];

/** @param whole number of findings with full-size images */
function overview(findings: readonly Finding[], before: Recording, after: Recording, whole: number): Markup {
  const { total, failures, bytes, ms } = summarize(findings);
  const visible = findings.filter(
    (one) => isFailure(one) && one.reasons.some(({ kind }) => !INVISIBLE.includes(kind)),
  );
  const images = new Set(findings.map(({ image }) => image)).size;
  return html`<header class="top">
<p class="brand">imagemill regress</p>
<h1 class="${failures > 0 ? 'bad' : 'good'}">${failures > 0 ? `${failures} of ${total} results changed` : `None of ${total} results changed`}</h1>
<p class="lead">${failures > 0 && `${visible.length === 0 ? 'None' : visible.length} of them look different or are errors. `}${plural(images, 'image')}, each converted in up to ${new Set(findings.map((one) => one.case)).size} ways.
All results together: ${formatBytes(bytes[0])} → ${formatBytes(bytes[1])} (${formatChange(...bytes, 1)})${ms[0] > 0 && ms[1] > 0 && `, ${(ms[0] / 1000).toFixed(1)} → ${(ms[1] / 1000).toFixed(1)} seconds of conversion (${formatChange(...ms, 1)})`}.</p>
<div class="tables">
${tools(before, after)}
${byReason(findings)}
${byCase(findings)}
</div>
</header>
${filters(findings)}
<p class="hint">Worst first. ${whole || 'No'} ${whole === 1 ? 'result has' : 'results have'} images of up to 640 pixels per side. Other results that differ have thumbnails, and results that
look the same have no images. <kbd>j</kbd> and <kbd>k</kbd> select the next and the previous result; the arrow keys move a slider.</p>`;
}

function tools(before: Recording, after: Recording): Markup {
  const names = [...new Set([...Object.keys(before.tools), ...Object.keys(after.tools)])];
  const row = (name: string) => {
    const [one, other] = [before.tools[name] ?? '–', after.tools[name] ?? '–'];
    return html`<tr class="${one !== other && 'differs'}"><th scope="row">${name}</th><td>${one}</td><td>${other}</td></tr>`;
  };
  const formatTime = ({ at }: Recording) => (at ? at.slice(0, 16).replace('T', ' ') : 'not recorded');
  return html`<section><h2>Tools</h2><table><thead><tr><th></th><th scope="col">before</th><th scope="col">after</th></tr></thead><tbody>${names.map(row)}
<tr><th scope="row">recorded</th><td>${formatTime(before)}</td><td>${formatTime(after)}</td></tr></tbody></table></section>`;
}

function byReason(findings: readonly Finding[]): Markup {
  const kinds = findings
    .filter(isFailure)
    .flatMap(({ reasons }) => [...new Set(reasons.map(({ kind }) => kind))]);
  if (kinds.length === 0) return html``;
  const counts = [...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length] as const);
  const rows = counts.sort(([, one], [, other]) => other - one);
  return html`<section><h2>What changed</h2><table><tbody>${rows.map(
    ([kind, count]) =>
      html`<tr><th scope="row"><button type="button" class="link" data-pick-kind="${kind}">${kind}</button></th><td class="number">${count}</td></tr>`,
  )}</tbody></table></section>`;
}

function byCase(findings: readonly Finding[]): Markup {
  const cases = [...new Set(findings.map((one) => one.case))].sort();
  const shown = VERDICT_NAMES.filter((verdict) => findings.some((one) => one.verdict === verdict));
  const row = (name: string) => {
    const caseFindings = findings.filter((one) => one.case === name);
    const counts = countVerdicts(caseFindings);
    const { bytes } = summarize(caseFindings);
    return html`<tr><th scope="row"><button type="button" class="link" data-pick-case="${name}">${name}</button></th>${shown.map(
      (verdict) =>
        html`<td class="number ${counts[verdict] > 0 && VERDICTS[verdict].fails ? 'bad' : ''}">${counts[verdict] || '·'}</td>`,
    )}<td class="number">${formatChange(...bytes, 1)}</td></tr>`;
  };
  return html`<section class="wide"><h2>Cases</h2><table><thead><tr><th></th>${shown.map(
    (verdict) => html`<th scope="col" class="number">${verdict}</th>`,
  )}<th scope="col" class="number">bytes</th></tr></thead><tbody>${cases.map(row)}</tbody></table></section>`;
}

function filters(findings: readonly Finding[]): Markup {
  const counts = countVerdicts(findings);
  const failing = findings.some(isFailure);
  const shown = VERDICT_NAMES.filter((verdict) => counts[verdict] > 0);
  const distinct = (toValue: (finding: Finding) => string) =>
    [...new Set(findings.map(toValue))].filter(Boolean).sort();
  const cases = distinct((one) => one.case);
  const formats = distinct(({ before, after }) => (after ?? before)?.format ?? '');
  const inputs = distinct(({ image }) => inputOf(image));
  const kinds = new Set(findings.flatMap(({ reasons }) => reasons.map(({ kind }) => kind)));
  return html`<search class="filters" aria-label="Filters">
<div class="chips">${shown.map(
    (verdict) =>
      html`<button type="button" class="chip ${verdict}" data-verdict="${verdict}" aria-pressed="${String(!failing || VERDICTS[verdict].fails)}" title="${VERDICTS[verdict].description}">${verdict} <b>${counts[verdict]}</b></button>`,
  )}</div>
${choice('case', 'all cases', cases)}
${choice('format', 'all output formats', formats)}
${choice('input', 'all input formats', inputs)}
${choice('kinds', 'all reasons', [...kinds].sort())}
<input type="search" name="text" placeholder="Name or reason" aria-label="Name or reason">
<output class="count"></output>
</search>`;
}

/** Renders a select whose first option matches all findings. */
function choice(name: string, all: string, values: readonly string[]): Markup {
  return html`<select name="${name}" aria-label="${name}"><option value="">${all}</option>${values.map(
    (value) => html`<option>${value}</option>`,
  )}</select>`;
}
