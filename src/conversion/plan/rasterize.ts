/** @module Commands of librsvg and pdftocairo, which render at the size of the result. Pure. */
import { type ImageInfo, invertOrientation, type Size, turnArea, turnSize } from '../../images/image-info.ts';
import { hasSpace, layOutPage, MAX_PAGE_POINTS, type PageLayout } from './page.ts';
import { cropOffset, keptPoint, padOffset } from './position.ts';
import { drawingBox, drawnSides, renderedPages, shownArea, staysVector } from './size.ts';
import { PAGE_STEM, type Step, words } from './step.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  INPUT_FILE,
  RASTERIZED_FILE,
  type Sentence,
} from './types.ts';

type Rendering = Omit<Step, 'tool'>;

/** Plans to render an SVG to PNG. ImageMagick rotates it, and adds the borders of `contain`. */
export function renderPng(job: ConversionJob): Rendering {
  return renderOnCanvas(job, sizeArguments(job, insideBox(job)));
}

function renderOnCanvas({ image, rasterized, output }: ConversionJob, size: readonly string[]): Rendering {
  return render(image, ['-f', 'png', ...size, ...onColour(image.canvasColour)], rasterized?.[0] ?? output);
}

/** Fills the page, because librsvg ignores the background of the root element. */
function onColour(colour: string | undefined): string[] {
  return colour ? ['--background-color', colour] : [];
}

/** Plans to render an SVG to PNG at its intrinsic size. */
export function renderOwnSize(image: ImageInfo): Step {
  return { tool: 'rsvg', ...render(image, ['-f', 'png'], RASTERIZED_FILE) };
}

/** Returns whether the SVG's own size matters: a page cuts it, adds space, or is a share of it. */
export function needsOwnSize(options: ConvertOptions): boolean {
  const { crop, trim, scale, fit, format } = options;
  const isCut =
    (crop ?? trim ?? scale) !== undefined || fit === 'cover' || (fit === 'contain' && format === 'pdf');
  // Otherwise, the page is just that of the drawing, at one point for each pixel.
  const setsPage = hasSpace(options) || options.dpi !== undefined;
  return isCut || (staysVector(options) && setsPage);
}

/**
 * Plans to render an SVG again whose PNG is larger than requested: librsvg rounds up, which matters
 * if the header does not state the size reliably.
 */
export function renderSmaller(
  job: ConversionJob,
  { width: drawnWidth = 0, height: drawnHeight = 0 }: Partial<Size>,
): Step | undefined {
  const { width, height } = drawingBox(job.options);
  const exceeded = [
    ...(width !== undefined && drawnWidth > width ? ['-w', String(width)] : []),
    ...(height !== undefined && drawnHeight > height ? ['-h', String(height)] : []),
  ];
  return exceeded.length > 0 ? { tool: 'rsvg', ...renderOnCanvas(job, exceeded) } : undefined;
}

/** Plans to render an SVG to PDF, unrounded. A pixel is a point, unless the page is too large. */
export function renderPdf(job: ConversionJob): Rendering {
  const { image, options, output } = job;
  const points = ['--dpi-x', '72', '--dpi-y', '72'];
  // The borders of `contain` do not have the colour below the drawing.
  const canvasColour = options.fit === 'contain' ? undefined : image.canvasColour;
  // librsvg paints one colour. A translucent one does not replace the requested background.
  const isOpaque = canvasColour?.startsWith('rgb(');
  const background = onColour(isOpaque ? canvasColour : (options.background ?? canvasColour));
  const args = ['-f', 'pdf', ...points, ...pageArguments(job), ...background];
  return { ...render(image, args, output), rendersTo: undefined };
}

function pageArguments(job: ConversionJob): string[] {
  const { options } = job;
  if (needsOwnSize(options)) return onPage(job);
  const [{ result } = { result: { width: 0, height: 0 } }] = job.fittings;
  const { page } = layOutPage(result, undefined, options);
  if (page.width === result.width) return sizeArguments(job, fitInside(options));
  if (options.fit === 'fill') return sides(page);
  const side = result.width > result.height ? { width: MAX_PAGE_POINTS } : { height: MAX_PAGE_POINTS };
  return ['-a', ...sides(side)];
}

/** Plans to read the SVG on standard input, so that it has no folder to load files from. */
function render(image: ImageInfo, args: readonly string[], output: string): Rendering {
  // Drawings have large areas of one colour, which level 1 packs as fast as it copies them.
  const deflateLevel = output === RASTERIZED_FILE ? 1 : undefined;
  const unlimited = image.hasLongText ? ['--unlimited'] : []; // the memory of the process is limited in any case
  return { args: [...unlimited, ...args, '-o', output], stdin: INPUT_FILE, rendersTo: output, deflateLevel };
}

/** @param inside arguments that fit the drawing inside the box */
function sizeArguments(job: ConversionJob, inside: string[]): string[] {
  const { options } = job;
  if (needsOwnSize(options)) return onPage(job);
  return options.fit === 'fill' ? sides(drawingBox(options)) : inside; // without -a, the drawing is stretched to both sides
}

/** Returns the sizes of a drawing and of a page that cuts or pads it, if its size is known. */
function onPage(job: ConversionJob): string[] {
  const { options, turn } = job;
  const [fitting] = job.fittings;
  const [size] = job.turnedSizes;
  if (!fitting || !size) return fitInside(options);
  const { resized } = fitting;
  const shown = shownArea(size, job);
  const [across, down] = [resized.width / shown.width, resized.height / shown.height];
  const page = staysVector(options) || options.fit === 'cover' ? fitting.result : resized;
  const point = keptPoint(job);
  const cut = cropOffset(fitting, point);
  const { x, y } =
    options.fit === 'cover' ? { x: -cut.x, y: -cut.y } : padOffset({ resized, result: page }, point);
  const placed = {
    x: x - shown.x * across,
    y: y - shown.y * down,
    width: size.width * across,
    height: size.height * down,
  };
  // The drawing is rotated afterwards.
  const drawn = turnArea(placed, page, invertOrientation(turn));
  const drawnPage = turnSize(page, turn);
  const { page: paper, picture } = paperOf(drawnPage, options);
  const scale = picture.width / drawnPage.width;
  return [
    ...words(`-w ${formatLength(drawn.width * scale)} -h ${formatLength(drawn.height * scale)}`),
    ...words(`--page-width ${formatLength(paper.width)} --page-height ${formatLength(paper.height)}`),
    `--left=${formatLength(picture.x + drawn.x * scale)}`,
    `--top=${formatLength(picture.y + drawn.y * scale)}`,
  ];
}

const formatLength = (length: number): string => String(Number(length.toFixed(6)) + 0); // never -0

/** Returns the page of a drawing in points, or the canvas of one in pixels. */
function paperOf(size: Size, options: ConvertOptions): PageLayout {
  if (!staysVector(options)) return { page: size, picture: { x: 0, y: 0, ...size } };
  return layOutPage(size, options.dpi ? { x: options.dpi, y: options.dpi } : undefined, options);
}

function insideBox({ image, options }: ConversionJob): string[] {
  const { width: ownWidth, height: ownHeight, styled } = image;
  const { width, height } = drawingBox(options);
  if (styled || !ownWidth || !ownHeight || (!width && !height)) return fitInside(options);
  const box = { width: width ?? Number.POSITIVE_INFINITY, height: height ?? Number.POSITIVE_INFINITY };
  return sides(drawnSides({ width: ownWidth, height: ownHeight }, box));
}

function fitInside(options: ConvertOptions): string[] {
  const { width, height } = drawingBox(options);
  return width || height ? ['-a', ...sides({ width, height })] : [];
}

/** Returns the size arguments. A single side keeps the aspect ratio. */
function sides({ width, height }: Pick<ConvertOptions, 'width' | 'height'>): string[] {
  return [...(width ? ['-w', String(width)] : []), ...(height ? ['-h', String(height)] : [])];
}

/** Returns the names of the PNG files of a PDF. All numbers have the digits of the last page. */
export function pageFiles({ image, pages }: Pick<ConversionJob, 'image' | 'pages'>): string[] {
  const digits = String(image.pageCount).length;
  return pages.map(({ index }) => `${PAGE_STEM}-${String(index + 1).padStart(digits, '0')}.png`);
}

/**
 * Plans to render the pages of a PDF to PNG, on white paper: adjacent pages of one size with one
 * command. Each gets exactly its size: pdftocairo scales it to both sides, and cuts off the pixel
 * by which it sometimes rounds up.
 */
export function renderPages(job: ConversionJob): Rendering[] {
  const sizes = renderedPages(job).map(({ width, height }) =>
    ['-scale-to-x', width, '-W', width, '-scale-to-y', height, '-H', height].map(String),
  );
  const numberOf = (at: number): number => 1 + (job.pages[at]?.index ?? 0);
  const isNext = (at: number): boolean =>
    at > 0 && numberOf(at) === numberOf(at - 1) + 1 && sizes[at]?.join() === sizes[at - 1]?.join();
  const starts = sizes.flatMap((_, at) => (isNext(at) ? [] : [at]));
  return starts.map((start, group) => {
    const end = (starts[group + 1] ?? sizes.length) - 1;
    const pages = ['-f', String(numberOf(start)), '-l', String(numberOf(end))];
    const size = sizes[start] as string[];
    return { args: ['-png', '-cropbox', ...pages, ...size, INPUT_FILE, PAGE_STEM], deflateLevel: 1 };
  });
}

export const explainRendering: Sentence = (job) => {
  const { image, options, fittings } = job;
  const [fitting] = fittings;
  if (image.type === 'pdf') {
    const [{ width, height } = {}] = renderedPages(job);
    return `drawn by pdftocairo at ${width} × ${height}`;
  }
  if (image.type !== 'svg') return undefined;
  if (staysVector(options)) return 'drawn by librsvg as vectors';
  const drawn = fitting && turnSize(fitting.result, job.turn);
  return `drawn by librsvg${drawn ? ` at ${drawn.width} × ${drawn.height}` : ''}`;
};
