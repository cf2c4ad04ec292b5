import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Recording } from '../recording.ts';
import { bySeverity, type Finding, isFailure } from '../verdict.ts';
import { findingCard } from './card.ts';
import { picturesOf } from './images.ts';
import { html, Markup } from './markup.ts';
import { overview } from './overview.ts';

/** The findings as one HTML file for people: nothing in it asks for another file or host. */

const ASSETS = new URL('../../../assets/report/', import.meta.url);

/**
 * So many of those that changed have their pictures whole, and so many of those that are alike; of the others that
 * differ there are thumbnails. 93 photos in 9 cases made 8 MB by that.
 */
const WHOLE = { changed: 40, alike: 10 };
const THUMBNAILS = 400;

export async function htmlReport(
  findings: readonly Finding[],
  before: Recording,
  after: Recording,
): Promise<string> {
  const [style, script] = await Promise.all(
    ['style.css', 'script.js'].map((name) => readFile(new URL(name, ASSETS), 'utf8')),
  );
  const sorted = bySeverity(findings);
  const [changed, alike] = [sorted.filter(isFailure), sorted.filter(({ verdict }) => verdict === 'alike')];
  const whole = new Set([...changed.slice(0, WHOLE.changed), ...alike.slice(0, WHOLE.alike)]);
  const cards: Markup[] = [];
  for (const [place, finding] of sorted.entries()) {
    const differs = isFailure(finding) || finding.verdict === 'alike';
    const pictures =
      differs && place < THUMBNAILS
        ? await picturesOf(finding, { before, after }, whole.has(finding))
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
<title>What changed: imagemill regress</title>
<style>${new Markup(style ?? '')}</style>
</head>
<body>
${overview(sorted, before, after, whole.size)}
<main id="findings">
${cards}
<p class="nothing" hidden>Nothing fits these filters.</p>
</main>
<script>${new Markup(script ?? '')}</script>
</body>
</html>
`.text;
}

const digest = (script = ''): string => createHash('sha256').update(script).digest('base64');
