/** @module The part of an image that `crop` keeps, before the image is fitted. Pure. */
import type { Area, ImageInfo, Size } from '../../images/image-info.ts';
import type { ConversionJob, ConvertOptions, Sentence } from './types.ts';

/** Properties that state the size of an image or a page. */
type Stored = Pick<ImageInfo, 'width' | 'height' | 'orientation'>;

/** Returns the upright sizes of the image, or of the pages to convert, as far as they are known. */
export function uprightSizes({
  image,
  pages,
  keepsAllFrames,
}: Pick<ConversionJob, 'image' | 'pages' | 'keepsAllFrames'>): Size[] {
  if (pages.length > 0) return pages.flatMap(uprightSize);
  return uprightSize(keepsAllFrames ? { ...image, orientation: 1 } : image); // frames are not rotated
}

function uprightSize({ width, height, orientation = 1 }: Stored): Size[] {
  if (!width || !height) return [];
  return [orientation < 5 ? { width, height } : { width: height, height: width }];
}

/**
 * Returns the area of an image that is shown: what `crop` keeps, or all of it. That of a raster image has whole pixels, at least
 * one.
 *
 * @param size upright size of the image
 */
export function shownArea(size: Size, { crop }: ConvertOptions, isVector: boolean): Area {
  if (crop === undefined) return { x: 0, y: 0, ...size };
  const area = parseCrop(crop, size);
  if (isVector) return area;
  const x = Math.min(Math.round(area.x), size.width - 1);
  const y = Math.min(Math.round(area.y), size.height - 1);
  const width = Math.max(1, Math.round(area.x + area.width) - x);
  return { x, y, width, height: Math.max(1, Math.round(area.y + area.height) - y) };
}

/** Parses `left,top,width,height`, each in pixels or, with a `%`, in percent of the side. */
function parseCrop(crop: string, size: Size): Area {
  const [x = 0, y = 0, width = 0, height = 0] = crop.split(',').map((text, at) => {
    const side = at % 2 === 0 ? size.width : size.height;
    return text.endsWith('%') ? (side * Number.parseFloat(text)) / 100 : Number(text);
  });
  return { x, y, width, height };
}

/** Maximum rounding error in pixels of a sum of two percentages. */
const ROUNDING_ERROR = 1e-6;

/** Returns the upright size of an image or page whose edge the crop exceeds; undefined if there is none. */
export function findCropOutside(job: ConversionJob): Size | undefined {
  const { crop } = job.options;
  if (crop === undefined) return undefined;
  return uprightSizes(job).find((size) => {
    const { x, y, width, height } = parseCrop(crop, size);
    return Math.max(x + width - size.width, y + height - size.height) > ROUNDING_ERROR;
  });
}

/** Cuts an image that ImageMagick has rotated upright. librsvg renders only the shown part of an SVG. */
export function crop(job: ConversionJob): string[] {
  if (job.image.type === 'svg' || job.pages.length > 0) return []; // pages are cut when they are read
  return cropTo(uprightSizes(job), job.options);
}

/** Cuts a page that ImageMagick has rotated upright. */
export function cropPage(page: Stored, { options }: ConversionJob): string[] {
  return cropTo(uprightSize(page), options);
}

function cropTo([size]: Size[], options: ConvertOptions): string[] {
  if (!size || options.crop === undefined) return [];
  const { x, y, width, height } = shownArea(size, options, false);
  return ['-crop', `${width}x${height}+${x}+${y}`, '+repage'];
}

export const explainCrop: Sentence = (job) => {
  const [size] = uprightSizes(job);
  if (!size || job.options.crop === undefined) return undefined;
  const { x, y, width, height } = shownArea(size, job.options, job.image.type === 'svg');
  return `cut to ${width} × ${height} from ${x}, ${y}`;
};
