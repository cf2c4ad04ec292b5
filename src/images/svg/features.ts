/**
 * @module Features of SVGs that browsers show and librsvg does not: how they are found in the text
 * of an SVG, what resolves them before librsvg reads it, and whether a result has a note if they
 * are still there.
 */
import { isTurnOver, waitForTurn } from '../containers/event-loop.ts';

/** Rewriters of `rewrite-text.ts`. */
export type RewriterName =
  | ('root' | 'sheets' | 'functions' | 'lengths' | 'shadows')
  | ('texts' | 'units' | 'warnings');

interface Feature {
  readonly what: string;
  /** Pattern of the text: without backtracking, and for at most {@link MAX_FOUND} characters. */
  readonly found: string;
  readonly resolvedBy?: RewriterName;
  /** What is still there after the rewriting makes no difference. */
  readonly isHarmless?: true;
  /** librsvg draws it from version 2.60. */
  readonly isNew?: true;
  /** Pattern that must be found, too, in any part of the text. */
  readonly beside?: string;
}

/** Maximum number of characters that a pattern finds. */
export const MAX_FOUND = 512;

const PREFIX = '[<:]';
/** Colour functions that not every version of librsvg supports (CSS Color 4 and 5). */
export const COLOUR_FUNCTIONS = ['oklch', 'oklab', 'lch', 'lab', 'hwb', 'color', 'color-mix'];

/** White space of XML. `\s` also has a byte of letters in UTF-8. */
const BLANKS = ' \\t\\r\\n';
const BLANK = `[${BLANKS}]`;

const FEATURES: readonly Feature[] = [
  {
    what: 'media queries',
    found: '@media\\b(?!\\s*(?:print\\b|\\(\\s*prefers-color-scheme\\s*:\\s*dark))',
    resolvedBy: 'sheets',
  },
  {
    what: 'media queries for print or a dark screen',
    found: '@media\\b',
    resolvedBy: 'sheets',
    isHarmless: true,
  },
  { what: 'a sheet for other media', found: '\\smedia\\s*=', resolvedBy: 'sheets', isHarmless: true },
  { what: '@supports and layers', found: '@(?:supports|layer)\\b', resolvedBy: 'sheets' },
  { what: 'namespaces in selectors', found: '@namespace\\b', resolvedBy: 'sheets', isHarmless: true },
  { what: 'nested rules', found: '\\{[^{}]*\\{', resolvedBy: 'sheets', isHarmless: true },
  { what: 'lists of selectors', found: ':(?:is|where|-webkit-any)\\(', resolvedBy: 'sheets' },
  {
    what: 'selectors that no element of a still picture matches',
    found: '::|:(?:hover|active|focus|target|enabled|disabled|checked|before|after)\\b',
    resolvedBy: 'sheets',
    isHarmless: true,
  },
  { what: 'other selectors', found: ':has\\(|:nth-[a-z-]{5,10}\\([^()]{1,40} of ' },
  { what: 'other rules', found: '@(?:import|container|scope|property)\\b' },
  { what: 'custom properties', found: '\\bvar\\(', resolvedBy: 'functions' },
  { what: 'colours for a light and a dark screen', found: '\\blight-dark\\(', resolvedBy: 'functions' },
  { what: 'new colours', found: `\\b(?:${COLOUR_FUNCTIONS.join('|')})\\(`, resolvedBy: 'functions' },
  { what: 'drop shadows', found: 'feDropShadow', resolvedBy: 'shadows', isHarmless: true },
  {
    what: 'a size of the root element with a capital letter',
    found: '\\b(?!width|height)(?:[Ww][Ii][Dd][Tt][Hh]|[Hh][Ee][Ii][Gg][Hh][Tt])\\b',
    resolvedBy: 'root',
    isHarmless: true,
  },
  { what: 'HTML', found: `${PREFIX}foreignObject` },
  {
    what: 'a warning of draw.io to viewers without HTML',
    found: 'requiredFeatures',
    resolvedBy: 'warnings',
    isHarmless: true,
  },
  { what: 'text on a path', found: `${PREFIX}textPath` },
  { what: 'lengths of text and paths', found: '(?:textLength|pathLength)=' },
  { what: 'calculations', found: 'calc\\(' },
  { what: 'origins of transforms', found: 'transform-origin' },
  { what: 'shapes that cut', found: 'clip-path(?:: ?|=")(?:circle|ellipse|polygon|inset|path)\\(' },
  {
    what: 'files and addresses of pictures and shapes',
    found: `${PREFIX}(?:image|use|feImage)\\s[^<>]{0,300}?href\\s*=\\s*["'](?!\\s*(?:#|data:|["']))`,
  },
  {
    what: 'files and addresses of paints, filters and masks',
    found:
      '(?:fill|stroke|filter|mask|clip-path)\\s*[:=]\\s*["\']?\\s*url\\(\\s*(?:["\']|&quot;|&apos;)?(?!#)[\\w./]',
  },
  { what: 'fonts of the file, or of an address', found: '@font-face\\b', resolvedBy: 'sheets' },
  { what: 'AVIF in the file', found: ';base64,\\s*AAAA[\\w+/]{4}ZnR5cGF2' },
  { what: 'WebP in the file', found: ';base64,\\s*UklG', isNew: true },
  { what: 'JPEG with an orientation, which `pictures.ts` marks', found: 'data:IMAGE/JPEG;base64' },
  {
    what: 'strokes that are not scaled',
    found: 'vector-effect\\s*(?:=\\s*["\']|:)\\s*non-scaling',
    isNew: true,
  },
  {
    what: 'pixels that are not smoothed',
    found: 'image-rendering\\s*(?:=\\s*["\']|:)\\s*(?:pixelated|crisp)',
    isNew: true,
  },
  {
    what: 'baselines',
    found: '(?:dominant|alignment)-baseline\\s*(?:=\\s*["\']|:)\\s*(?!auto|alphabetic|baseline|inherit)',
    isNew: true,
  },
  {
    what: 'a text below or above its line',
    found: `${PREFIX}text\\s[^<>]{0,300}?baseline-shift\\s*[=:]\\s*["']?\\s*(?!baseline|0\\b|["'])`,
  },
  { what: 'text from right to left', found: 'direction\\s*(?:=\\s*["\']|:)\\s*rtl', isNew: true },
  // Hebrew and Arabic, as bytes of UTF-8.
  {
    what: 'parts of a text from right to left',
    found: '<tspan[^<>]{0,200}>[^<]{0,40}[\\xd6-\\xdb]',
    isNew: true,
  },
  // R and Inkscape write it for every text. It makes a difference for blanks that are not single
  // ones between words.
  {
    what: 'white space',
    found: 'white-space(?:-collapse)?\\s*:\\s*(?:pre|break)',
    beside: `(?:(?<!/tspan)>${BLANK}|[^<${BLANKS}](?:${BLANK}{2}|[\\t\\r\\n]))${BLANK}{0,40}[^<>${BLANKS}][^<>]{0,200}</?t(?:ext|span)`,
  },
  {
    what: 'capital letters',
    found: 'text-transform\\s*:\\s*(?!none|inherit)',
    resolvedBy: 'texts',
  },
  {
    what: 'font sizes of the root element',
    found: '[:"\'\\s,(]-?[\\d.]{1,20}r(?:em|lh)\\s*[;"\'\\s,)/}]',
    resolvedBy: 'lengths',
  },
  {
    what: 'animations',
    found: `${PREFIX}(?:animate(?:Transform|Motion|Color)?|set)[\\s/>]|animation(?:-name)?\\s*:(?!\\s*none)`,
  },
  { what: 'paths in CSS', found: '[{;"\'\\s]d\\s*:\\s*path\\(' },
  { what: 'transforms in percent', found: 'transform\\s*:[^;:"\'{}]{0,100}\\d%' },
  { what: 'points of symbols', found: '<symbol[^<>]{0,300}\\sref[XY]\\s*=' },
  {
    what: 'tiny units',
    found: 'viewBox\\s*=\\s*["\']\\s*[^\\s"\',]{1,30}[\\s,]+[^\\s"\',]{1,30}[\\s,]+(?:0?\\.00|[\\d.]+[eE]-)',
    resolvedBy: 'units',
  },
];

const patternOf = (features: readonly Feature[]): RegExp =>
  new RegExp(features.map(({ found }) => found).join('|'));

const NOTED = FEATURES.filter(({ isHarmless }) => !isHarmless);
const UNRESOLVED = patternOf(NOTED.filter(({ isNew, beside }) => !isNew && !beside));
const NEW = patternOf(NOTED.filter(({ isNew }) => isNew));

/** Returns whether an SVG, or a part of it, has features that no version of librsvg draws. */
export const hasUnresolved = (text: string): boolean => UNRESOLVED.test(text);
/** Returns whether an SVG, or a part of it, has features that librsvg draws from version 2.60. */
export const hasNew = (text: string): boolean => NEW.test(text);
/** Features that make a difference only if both patterns are found, each in any part of an SVG. */
export const PAIRS: readonly (readonly [RegExp, RegExp])[] = FEATURES.flatMap(({ found, beside }) =>
  beside ? [[new RegExp(found), new RegExp(beside)] as const] : [],
);

/** Returns the pattern of the text that a rewriter can change. */
export const rewrittenBy = (name: RewriterName): RegExp =>
  patternOf(FEATURES.filter(({ resolvedBy }) => resolvedBy === name));

const REWRITTEN = patternOf(FEATURES.filter(({ resolvedBy }) => resolvedBy));

/** Characters to search at once, in up to 5 ms, and to search again for what begins before. */
const PART_LENGTH = 64 * 1024;
const OVERLAP = 4096;

/** Returns whether rewriting can change a text. Yields, because 1 MB takes up to 60 ms. */
export async function canRewrite(text: string): Promise<boolean> {
  for (let at = 0; at < text.length; at += PART_LENGTH - OVERLAP) {
    if (isTurnOver()) await waitForTurn();
    if (REWRITTEN.test(text.slice(at, at + PART_LENGTH))) return true;
  }
  return false;
}
