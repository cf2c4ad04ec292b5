import { drawingBox, drawnSides, type Size } from './size.ts';
import { type ConvertOptions, type ImageInfo, INPUT_FILE, type PlanContext, type Step } from './types.ts';

/** How librsvg draws an SVG, so that it is never larger than asked for. Pure. */

/** Draws to PNG. */
export function drawPixels({ image, options }: PlanContext, output: string): Step {
  return drawing(['-f', 'png', ...sizeArguments(image, options)], output);
}

/**
 * The step that draws again what came out larger than asked for. That happens where the header does not tell the size
 * for sure, since librsvg rounds up.
 *
 * @param output the name of the drawing
 * @param drawn its size
 */
export function drawSmaller(
  output: string,
  { width: drawnWidth = 0, height: drawnHeight = 0 }: Partial<Size>,
  options: ConvertOptions,
): Step | undefined {
  const { width, height } = drawingBox(options);
  const exceeded = [
    ...(width !== undefined && drawnWidth > width ? ['-w', String(width)] : []),
    ...(height !== undefined && drawnHeight > height ? ['-h', String(height)] : []),
  ];
  return exceeded.length > 0 ? drawing(['-f', 'png', ...exceeded], output) : undefined;
}

/** Draws to PDF, where no side is rounded. One pixel is one point. */
export function drawVector({ options, output }: PlanContext): Step {
  const points = ['--dpi-x', '72', '--dpi-y', '72'];
  const paper = options.background ? ['--background-color', options.background] : [];
  const { rendersTo: draws, ...step } = drawing(
    ['-f', 'pdf', ...points, ...fitInside(options), ...paper],
    output,
  );
  return step;
}

/** On its standard input, librsvg has no folder that the drawing could read neighbours from. */
function drawing(args: readonly string[], output: string): Step {
  return { tool: 'rsvg', args: [...args, '-o', output], stdin: INPUT_FILE, rendersTo: output };
}

function sizeArguments(image: ImageInfo, options: ConvertOptions): string[] {
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

/** One side alone keeps the aspect. */
function sides({ width, height }: Pick<ConvertOptions, 'width' | 'height'>): string[] {
  return [...(width ? ['-w', String(width)] : []), ...(height ? ['-h', String(height)] : [])];
}
