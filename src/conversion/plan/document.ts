/**
 * @module Pages of a PDF: how each picture is encoded, and the files that the commands write for
 * it. A PDF contains the bytes of these files as they are; see `src/images/pdf/`. Pure.
 */
import { combineOrientations, type ImageFacts, type Scale, swapsSides } from '../../images/image-info.ts';
import { DPI, INPUTS, type InputType } from '../../tables/formats.ts';
import { isOpaqueStill } from './decode.ts';
import { addsShades, staysVector } from './size.ts';
import { SUFFIX, words } from './step.ts';
import { type ConversionJob, type DocumentPage, type DocumentPlan, INPUT_FILE } from './types.ts';

/** Returns what becomes of the pages of a PDF; undefined if it has no pictures. */
export function planDocument(job: ConversionJob): DocumentPlan | undefined {
  const pages = documentPages(job);
  if (pages.length === 0) return undefined;
  const { pageSize = 'image', pageMargin = 0, pageOrientation = 'auto', metadata } = job.options;
  return {
    pages,
    keepsMetadata: job.isEmbedded && metadata === 'all',
    pageSize,
    pageMargin,
    pageOrientation,
  };
}

const fileOf = (at: number, what: 'jpg' | 'png' | 'tiff' | 'alpha.png'): string =>
  `sheet${SUFFIX}-${at}.${what}`;

/** Returns the pages of a PDF that has pictures; none for other formats or a PDF of vectors. */
export function documentPages(job: ConversionJob): DocumentPage[] {
  const { image, options, frameCount, isEmbedded } = job;
  if (options.format !== 'pdf' || (image.type === 'svg' && staysVector(options))) return [];
  return Array.from({ length: frameCount }, (_, at): DocumentPage => {
    const resolution = resolutionOf(job, at);
    if (isEmbedded) return { jpeg: INPUT_FILE, resolution, orientation: job.orientation };
    return {
      ...filesOf(job, at),
      mask: mayBeTransparent(job) ? fileOf(at, 'alpha.png') : undefined,
      resolution,
      orientation: 1,
    };
  });
}

function filesOf(job: ConversionJob, at: number): Pick<DocumentPage, 'jpeg' | 'png' | 'fax'> {
  const { options, measured } = job;
  const { paletteKind } = factsOf(job, at);
  const colours = measured.sampledColours?.[at];
  const [jpeg, png, fax] = [fileOf(at, 'jpg'), fileOf(at, 'png'), fileOf(at, 'tiff')];
  if (colours !== undefined) return { jpeg, png, fax: colours <= 2 ? fax : undefined };
  if (paletteKind === undefined && !options.lossless) return { jpeg };
  return { png, fax: paletteKind === 'bilevel' && !addsShades(options) ? fax : undefined };
}

/** Returns what the header states about a page, or about the image. */
const factsOf = ({ image, pages }: ConversionJob, at: number): ImageFacts =>
  (image.pages ? pages[at] : undefined) ?? image;

/** Returns the pixels per inch of a picture on its page, in the directions of the result. */
function resolutionOf(job: ConversionJob, at: number): Scale | undefined {
  const { image, options, turn, pages } = job;
  const given = options.dpi ?? (image.type === 'pdf' ? DPI.default : undefined); // a drawn page keeps its size
  if (given) return { x: given, y: given };
  const { resolution } = factsOf(job, at);
  const own = pages[at] ? combineOrientations(pages[at].orientation ?? 1, turn) : job.orientation;
  return resolution && swapsSides(own) ? { x: resolution.y, y: resolution.x } : resolution;
}

/** Types whose header reliably states opacity. A GIF frame can leave a part of the canvas empty. */
const STATING_ALPHA: readonly InputType[] = ['png', 'bmp', 'tiff'];

/** Returns whether pages can need soft masks: not on a `background`, or if all are opaque. */
function mayBeTransparent(job: ConversionJob): boolean {
  const { image, options, pages } = job;
  const { type, pixels, shownRows } = image;
  const statesNone = STATING_ALPHA.includes(type) && pixels?.alpha === false;
  const isOpaque =
    INPUTS[type].opaque === true ||
    isOpaqueStill(job) ||
    (statesNone && pages.length <= 1 && shownRows === undefined);
  return options.background === undefined && !isOpaque;
}

/** Returns arguments that print whether the picture is opaque. */
export const printOpaquePage = (at: number): string[] => ['-print', `page ${at} opaque: %[opaque]\\n`];

/** Returns the pages whose picture has transparency, as the commands have printed. */
export const transparentPages = (printed: string): ReadonlySet<number> =>
  new Set(Array.from(printed.matchAll(/^page (\d+) opaque: false/gim), ([, at]) => Number(at)));

/** Side in pixels of the sample whose colours are counted: some of those of the picture. */
const SAMPLE_SIDE = 128;

/** Most colours of a palette. */
const MAX_COLOURS = 256;
/** Most greys that are few. Grey photos have up to 256, and are five times as large lossless. */
const MAX_GREYS = 16;

/** Returns arguments that count the colours of a sample. Those of a whole photo take seconds. */
export function printSampled({ image }: ConversionJob, { png }: DocumentPage, at: number): string[] {
  // The noise of a JPEG has more colours than what it shows.
  if (image.type === 'jpg' || png) return [];
  return [
    ...words(`( +clone -sample ${SAMPLE_SIDE}x${SAMPLE_SIDE}! -print`),
    `sample ${at}: ${COLOURS}`,
    ...words('+delete )'),
  ];
}

/** Returns arguments that print the number of colours of the picture. */
export const printColours = (at: number): string[] => ['-print', `colours ${at}: ${COLOURS}`];

/** Format of the number of colours, and whether these are greys. */
const COLOURS = '%k %[type]\\n';

/** Returns how many colours the sample of each page has, if few; undefined if no page has few. */
export function parseSampled(job: ConversionJob, printed: string): (number | undefined)[] | undefined {
  const few = parseCounts(job, printed, 'sample');
  return few.size > 0 ? Array.from({ length: job.frameCount }, (_, at) => few.get(at)) : undefined;
}

/** Returns the pages whose picture has few colours, as the commands have printed. */
export const pagesOfFewColours = (job: ConversionJob, printed: string): ReadonlySet<number> =>
  new Set(parseCounts(job, printed, 'colours').keys());

/** Returns the number of colours of each page that has few. */
function parseCounts(
  { image }: ConversionJob,
  printed: string,
  what: 'sample' | 'colours',
): Map<number, number> {
  const few = new Map<number, number>();
  for (const [, at, count, type = ''] of printed.matchAll(
    new RegExp(`^${what} (\\d+): (\\d+) (\\w+)`, 'gm'),
  )) {
    const isPhoto = type.startsWith('Gray') && !image.flat;
    if (Number(count) <= (isPhoto ? MAX_GREYS : MAX_COLOURS)) few.set(Number(at), Number(count));
  }
  return few;
}
