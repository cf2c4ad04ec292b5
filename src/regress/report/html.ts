/** @module The HTML report: one self-contained file that loads nothing from other files or hosts. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ASSETS_DIR } from '../../folders.ts';
import type { Recording } from '../recording.ts';
import { bySeverity, type Finding, isFailure } from '../verdict.ts';
import { findingCard } from './card.ts';
import { renderImages } from './images.ts';
import { html, Markup } from './markup.ts';
import { overview } from './overview.ts';

const STYLES = ['style/colours.css', 'style/slider.css', 'report/style.css'];

/**
 * Maximum number of findings with full-size images. The others that differ have thumbnails. With these limits, the
 * report of 93 photos in 9 cases has 8 MB.
 */
const MAX_FULL_SIZE = { changed: 40, similar: 10 };
/** Maximum number of findings with images. */
const MAX_WITH_IMAGES = 400;

/** Renders findings as an HTML page. */
export async function htmlReport(
  findings: readonly Finding[],
  before: Recording,
  after: Recording,
): Promise<string> {
  const style = (await Promise.all(STYLES.map(readAsset))).join('\n');
  const script = await readAsset('report/script.js');
  const sorted = bySeverity(findings);
  const [changed, similar] = [
    sorted.filter(isFailure),
    sorted.filter(({ verdict }) => verdict === 'similar'),
  ];
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
  const policy = `default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-${digest(script)}'`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
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

const digest = (script: string): string => createHash('sha256').update(script).digest('base64');
