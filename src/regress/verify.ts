/**
 * @module Verifies a result: decodes it and its source with libraries that have not made it,
 * reduces the source with sharp, and compares. Shares no code with the planner.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ConvertOptions } from '../conversion/plan/types.ts';
import type { Size } from '../images/image-info.ts';
import { INPUTS, type InputType, OUTPUTS, type OutputType } from '../tables/formats.ts';
import { comparePixels } from './compare-images.ts';
import {
  decode,
  decodeReduced,
  encode,
  encodeAlike,
  openImage,
  openRaster,
  REDUCTION,
  readSamples,
  toImage,
  toReadable,
} from './image/codec.ts';
import { type Difference, measureDifference } from './image/difference.ts';
import {
  compositeOver,
  cutDetail,
  DETAIL,
  type DecodedImage,
  decodeBmp,
  type Raster,
  roundAlpha,
} from './image/image.ts';
import { defaultThresholds, LOSSY, type Thresholds } from './thresholds.ts';
import type { Verification, VerifyMode } from './verifiable.ts';

/** Differences of a channel, 0 to 255, that `pixels` allows. */
const TOLERANCE = { equal: 0, rounded: 1 };

/** Verifies a result. An error of a decoder is a reason. */
export async function verify(
  mode: VerifyMode,
  type: InputType,
  source: Buffer,
  result: Buffer,
  options: ConvertOptions,
): Promise<Verification> {
  const { format, quality } = options;
  const decoder = format === 'jxl' ? 'sharp, jxl-oxide' : 'sharp';
  const fail = (reason: string): Verification => ({ mode, passed: false, reason, decoder });
  const isJpeg = mode === 'visual' && type === 'jpg' && format === 'jpg';
  const reduced = isJpeg && !isResized(options) && (await compareReduced(source, result));
  if (reduced) return { mode, passed: true, decoder, reduction: REDUCTION.factor, ...toFigures(reduced) };
  const found = await decode(result, format).catch((error: Error) => error);
  if (found instanceof Error) return fail(`the result cannot be decoded: ${firstLine(found)}`);
  const expected = await toReadable(source, type)
    .then((file) => prepareExpected(file, type, options, mode))
    .catch((error: Error) => error);
  if (expected instanceof Error)
    return fail(`this ${INPUTS[type].label} cannot be compared: ${firstLine(expected)}`);
  if (mode === 'pixels' && format === 'jxl' && quality !== 100) return fail(NOT_RESTORABLE);
  const { image, convertsColours, isComposited } = expected;
  const reason = findShape(image, found);
  if (reason) return fail(reason);
  const isExact = !['jpg', 'avif', 'jxl'].includes(type) && !convertsColours && !isComposited;
  const [bits = 8, foundBits = 8] = [image.facts.depth, found.facts.depth];
  const isDeep = mode === 'pixels' && isExact && bits === 16;
  const sameSamples = async () => {
    const read = async (file: Buffer, own: InputType | OutputType) =>
      readSamples(await toReadable(file, own));
    return haveSameSamples(
      await read(source, type),
      foundBits === 16 ? await read(result, format) : widen(found.frames),
    );
  };
  if (mode === 'pixels' && bits > foundBits && !(isDeep && (await sameSamples())))
    return fail(`${foundBits} bits per channel instead of ${bits}`);
  const max = isExact ? TOLERANCE.equal : TOLERANCE.rounded;
  const isLoose = isResized(options) || convertsColours;
  const allowed: Thresholds =
    mode === 'pixels'
      ? { ...defaultThresholds({ format: 'png' }), max, area: 0, deltaE: Infinity }
      : { ...defaultThresholds(options), ...(isLoose && LOOSE), psnr: undefined, ...COARSE[format] };
  let { reasons, difference } = comparePixels(image, found, [], allowed);
  const others = reasons.length > 0 && mode === 'visual' ? alternatives(expected, options) : [];
  for await (const other of others) {
    ({ reasons, difference } = comparePixels(other, found, [], allowed));
    if (reasons.length === 0) break; // here, since the loop has the next one made before its body
  }
  if (isDeep && foundBits === 16 && reasons.length === 0 && !(await sameSamples()))
    return fail('samples of 16 bits differ by less than 1 of 255');
  const passed = reasons.length === 0;
  const why = reasons.map(({ text }) => text).join('; ');
  const colours = mode === 'pixels' && convertsColours ? ' after a conversion of colours' : '';
  return {
    mode,
    passed,
    decoder,
    ...(difference && toFigures(difference)),
    reason: passed ? undefined : why + colours,
    picture: passed || !difference ? undefined : await drawWorst(image, found, difference),
  };
}

/**
 * Returns what a sound result can show instead, if it exceeds the limits, the fastest to make
 * first. Sharp edges of saturated colours lose more than the limits allow: another encoder of the
 * same quality loses as much.
 */
async function* alternatives(
  { image, repeatExactly }: Expected,
  options: ConvertOptions,
): AsyncGenerator<DecodedImage> {
  const encoded = await encodeAlike(image, options);
  if (encoded) yield encoded;
  const exact = await repeatExactly?.();
  if (!exact) return;
  yield exact;
  const encodedExactly = await encodeAlike(exact, options);
  if (encodedExactly) yield encodedExactly;
}

const isResized = ({ width, height }: ConvertOptions): boolean => (width ?? height) !== undefined;

interface Expected {
  readonly image: DecodedImage;
  /**
   * Reduces the source again, without decoding a JPEG or WebP at a smaller size, which blurs fine
   * details. Takes twice the time. Undefined for a result with the size of its source.
   */
  readonly repeatExactly: (() => Promise<DecodedImage>) | undefined;
  /** Whether sharp has converted the colours, so that rounding differs. */
  readonly convertsColours: boolean;
  /** Whether transparency was replaced by the background colour, so that rounding differs. */
  readonly isComposited: boolean;
}

/**
 * Decodes the first image of a source, and fits it inside the width and height of the options.
 *
 * @param source a file that sharp reads, or a BMP
 * @throws {Error} if sharp cannot read the source, or only one of its frames or pages would be
 *   compared
 */
async function prepareExpected(
  source: Buffer,
  type: InputType,
  options: ConvertOptions,
  mode: VerifyMode,
): Promise<Expected> {
  if (type === 'svg') throw new Error('libvips draws it with librsvg, as the result was');
  const output = OUTPUTS[options.format];
  const open = () =>
    type === 'bmp' ? openRaster(decodeBmp(source)) : openImage(source, { failOn: 'error' });
  const metadata = await open().metadata();
  const { pages = 1, icc, space, autoOrient: upright } = metadata;
  const name = INPUTS[type].pages ? 'pages' : 'frames';
  const holdsAll = output.animation || output.pages || mode === 'pixels';
  if (pages > 1 && holdsAll && options[name] !== 'first')
    throw new Error(`only single images are verified, and it has ${pages} ${name}: use --${name} first`);
  if (space === 'cmyk' && !icc) throw new Error('its CMYK colours are not defined by a profile');
  const isReduced = isResized(options);
  let isComposited = false;
  const make = async (fastShrinkOnLoad: boolean): Promise<DecodedImage> => {
    const whole = open().autoOrient();
    const resized = isReduced
      ? whole.resize({ ...reduceInside(upright, options), fit: 'fill', fastShrinkOnLoad })
      : whole;
    const image = await toImage(resized, { ...metadata, pages: 1 }, 1);
    if (output.alpha === 'binary') for (const { data } of image.frames) roundAlpha(data);
    isComposited = output.alpha === 'none' && image.facts.alpha;
    return isComposited ? compositeAll(image, options.background) : image;
  };
  return {
    image: await make(true),
    repeatExactly: isReduced ? () => make(false) : undefined,
    convertsColours: icc !== undefined || !['srgb', 'b-w', 'rgb16', 'grey16'].includes(space),
    isComposited,
  };
}

/** Composites an image over the background colour. sharp's own step rounds down. */
async function compositeAll({ frames, facts }: DecodedImage, background = '#ffffff'): Promise<DecodedImage> {
  const pixel = openRaster({ width: 1, height: 1, data: new Uint8Array(4) });
  const [red = 0, green, blue] = await pixel.flatten({ background }).raw().toBuffer();
  const composited = frames.map((frame: Raster) => compositeOver(frame, red, green, blue));
  return { frames: composited, facts: { ...facts, alpha: false } };
}

/** Returns the size inside a box. sharp would round it twice if it decodes at a smaller size. */
function reduceInside(own: Size, { width, height }: Pick<ConvertOptions, 'width' | 'height'>): Size {
  const scale = Math.min(1, (width ?? Infinity) / own.width, (height ?? Infinity) / own.height);
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(own.width), height: side(own.height) };
}

const toFigures = ({ max, psnr, at }: Difference) => ({
  max,
  psnr: Number.isFinite(psnr) ? psnr : undefined,
  worst: at,
});

/** Difference of a channel that does not count for `area` in reduced images. */
const REDUCED_TOLERANCE = 12;
/** Limits of reduced images. At quality 80, photos reach 22, 9, 2.3, 0.9991 and 0.14. */
const REDUCED = { max: 32, area: 10, patch: 3, ssim: 0.98, deltaE: 0.4 };

/** Compares two large JPEGs, reduced; undefined if not alike: then, the whole images decide. */
async function compareReduced(source: Buffer, result: Buffer) {
  const decoding = [decodeReduced(source, true), decodeReduced(result, false)] as const;
  const [one, other] = await Promise.all(decoding).catch(() => []);
  if (!one || !other || !isDeepStrictEqual(one.whole, other.whole)) return undefined;
  const found = measureDifference(one.raster, other.raster, true, REDUCED_TOLERANCE);
  const { max, area, patch, ssim = 1, deltaE, at } = found;
  const isAlike = max <= REDUCED.max && area <= REDUCED.area && patch <= REDUCED.patch;
  if (!isAlike || ssim < REDUCED.ssim || deltaE > REDUCED.deltaE) return undefined;
  return { ...found, at: { x: at.x * REDUCTION.factor, y: at.y * REDUCTION.factor } };
}

const NOT_RESTORABLE =
  'only an upright JPEG, not in CMYK, becomes a JPEG XL from which it can be restored: for others, except CMYK, use --quality 100';

/** libvips repeats a warning in a line for each time. */
const firstLine = ({ message }: Error): string => message.trim().split('\n')[0] ?? '';

/** Filters of resizes differ at edges, and tables of colours by up to 7 of 255. */
const LOOSE = { max: undefined, area: undefined, ...LOSSY };

/** Limits of formats that lose more. PSNR falls with saturated edges, too. */
const COARSE: Partial<Record<OutputType, Partial<Thresholds>>> = {
  // A photo in 256 colours without dithering reaches 0.957 to its source, and 4.2 in a smooth area.
  gif: { max: undefined, area: undefined, ssim: 0.9, patch: 25, deltaE: 5 },
  // Dark photos reach 1.2, and fine grain of low contrast, as of film or paper, 0.853.
  avif: { ssim: 0.84, deltaE: 1.5 },
  // Grain reaches 0.842 at quality 80, and letters in saturated colours 16.5 and 1.3. sharp has no
  // encoder to compare with.
  jxl: { ssim: 0.84, patch: 17, deltaE: 1.5 },
};

function findShape(expected: DecodedImage, found: DecodedImage): string | undefined {
  const { length } = found.frames;
  if (length !== 1) return `${length} frames or pages instead of 1`;
  const [a, b] = [expected.frames[0] as Raster, found.frames[0] as Raster];
  return a.width === b.width && a.height === b.height
    ? undefined
    : `${b.width} × ${b.height} pixels instead of ${a.width} × ${a.height}`;
}

/** Returns samples of 8 bits as samples of 16. */
const widen = (frames: readonly Raster[]): Uint16Array =>
  Uint16Array.from(Buffer.concat(frames.map(({ data }) => data)), (sample) => sample * 257);

/** Returns whether samples are the same, except under transparent pixels. */
function haveSameSamples(one: Uint16Array, other: Uint16Array): boolean {
  const isHidden = (at: number): boolean => one[at | 3] === 0 && other[at | 3] === 0;
  return one.length === other.length && one.every((sample, at) => sample === other[at] || isHidden(at));
}

async function drawWorst(expected: DecodedImage, found: DecodedImage, { at }: Difference): Promise<string> {
  const details = [expected, found].map(({ frames }) => cutDetail(frames[0] as Raster, at));
  const [{ width, height }] = details as [Raster];
  const data = new Uint8Array(2 * width * height * 4);
  for (const [side, detail] of details.entries()) {
    for (let row = 0; row < height; row += 1) {
      const from = row * width * 4;
      data.set(detail.data.subarray(from, from + width * 4), (row * 2 + side) * width * 4);
    }
  }
  const { bytes } = await encode({ width: 2 * width, height, data }, 2 * width, DETAIL.factor);
  return bytes.toString('base64');
}
