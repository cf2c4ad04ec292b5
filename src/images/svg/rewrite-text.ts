/** @module Rewrites the text of an SVG so that librsvg renders it like browsers. */

import { type CssBudget, createCssBudget } from './css.ts';
import { expandDropShadows } from './drop-shadow.ts';
import { type Markup, scanMarkup } from './markup.ts';
import { RESOLVED_FUNCTIONS, resolveCss } from './resolve-css.ts';
import { applyTransformOrigins } from './transform-origin.ts';

/** Rewriters in order of execution. Each applies to texts that contain one of its markers. */
const REWRITERS: readonly {
  readonly markers: readonly string[];
  readonly rewrite: (text: string, markup: Markup, budget: CssBudget) => string;
}[] = [
  { markers: RESOLVED_FUNCTIONS, rewrite: resolveCss },
  { markers: ['transform-origin'], rewrite: applyTransformOrigins },
  { markers: ['feDropShadow'], rewrite: expandDropShadows },
];

/** Parts of texts that {@link rewriteText} can change. */
export const MARKERS = REWRITERS.flatMap(({ markers }) => markers);

/** Rewrites the text of an SVG. Takes up to 5 ms per 1000 characters, and at most about 0.3 s. */
export function rewriteText(original: string): string {
  const budget = createCssBudget(original.length);
  let text = original;
  let markup = scanMarkup(text);
  for (const { markers, rewrite } of REWRITERS) {
    if (!markers.some((marker) => original.includes(marker))) continue;
    const rewritten = rewrite(text, markup, budget);
    if (rewritten !== text) markup = scanMarkup(rewritten);
    text = rewritten;
  }
  return text;
}
