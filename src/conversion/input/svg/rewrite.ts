/** @module Rewrites an SVG so that librsvg renders it like browsers. */

import { readFile, stat, writeFile } from 'node:fs/promises';
import { expandDropShadows } from './drop-shadow.ts';
import { type Markup, scanMarkup } from './markup.ts';
import { RESOLVED_FUNCTIONS, resolveCss } from './resolve-css.ts';
import { applyTransformOrigins } from './transform-origin.ts';

/** Maximum size of an SVG to rewrite, in bytes. Larger ones are not changed. */
const MAX_BYTES = 1024 ** 2;

/** Rewriters in order of execution. Each applies to texts that contain one of its markers. */
const REWRITERS: readonly {
  readonly markers: readonly string[];
  readonly rewrite: (text: string, markup: Markup) => string | Promise<string>;
}[] = [
  { markers: RESOLVED_FUNCTIONS, rewrite: resolveCss },
  { markers: ['transform-origin'], rewrite: applyTransformOrigins },
  { markers: ['feDropShadow'], rewrite: expandDropShadows },
];

/** An SVG with entity declarations is not rewritten, because entities can contain any markup. */
const ENTITIES = '<!ENTITY';

/** Rewrites the SVG at `path` in place. An SVG in another encoding than UTF-8 is not changed. */
export async function rewriteSvg(path: string): Promise<void> {
  if ((await stat(path)).size > MAX_BYTES) return;
  const bytes = await readFile(path);
  if (bytes.includes(ENTITIES)) return;
  const rewriters = REWRITERS.filter(({ markers }) => markers.some((marker) => bytes.includes(marker)));
  const original = rewriters.length > 0 ? decodeUtf8(bytes) : undefined;
  if (original === undefined) return;
  let text = original;
  let markup = await scanMarkup(text);
  for (const { rewrite } of rewriters) {
    const rewritten = await rewrite(text, markup);
    if (rewritten !== text) markup = await scanMarkup(rewritten);
    text = rewritten;
  }
  if (text !== original) await writeFile(path, text);
}

function decodeUtf8(bytes: Buffer): string | undefined {
  const declared = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)/.exec(bytes.toString('latin1', 0, 200))?.[1];
  if (declared && !/^(?:utf-?8|us-ascii)$/i.test(declared)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
