import sharp from 'sharp';
import { OUTPUTS, type OutputType } from '../../src/formats.ts';
import { type Difference, decode, difference, onGrey, type Pixels } from '../../test/helpers/pixels.ts';
import type { FileConversion, Source } from './convert-file.ts';
import { type Reference, withoutRepeats } from './reference.ts';

/** Whether a result is the picture that the independent decoders see, and how far from it. */

export interface Verdict {
  readonly name: string;
  readonly format: OutputType;
  /** In the words of the report; undefined when all is well. */
  readonly trouble?: 'failed' | 'unreadable' | 'size' | 'frames' | 'timing' | 'leaked' | 'differs';
  readonly detail: string;
  readonly measured?: Difference;
  /** PSNR of sharp's own encoder at the same settings, where the format loses something. */
  readonly sharps?: number;
  /** Nobody else could read the file either. */
  readonly hopeless?: boolean;
}

/** In dB, how far a lossy result may stay behind sharp's own. Other code and defaults explain that much. */
const LESS_THAN_SHARP = 1;
/** A table of 256 colours is chosen in as many ways as there are programs. */
const LESS_IN_GIF = 3;
/** Nobody sees what is nearer than this, in dB; sharp's encoder may have been lucky. */
const INVISIBLE = 43;
/** Lossless formats may differ by the rounding of a colour transform: mean of all channels, of 255. */
const ROUNDING = 1;

export async function judge(
  source: Source,
  shown: readonly Reference[],
  attempt: FileConversion,
): Promise<Verdict> {
  const about = { name: source.name, format: attempt.format };
  if ('error' in attempt) {
    return { ...about, trouble: 'failed', detail: attempt.error, hopeless: shown.length === 0 };
  }
  if (shown.length === 0)
    return { ...about, trouble: 'unreadable', detail: 'by the independent decoders', hopeless: true };
  const opinions = await Promise.all(shown.map((one) => compare(one, attempt.result, attempt.format)));
  const best = opinions.reduce((a, b) => (a.trouble && (!b.trouble || worse(a) > worse(b)) ? b : a));
  if (!best.trouble && attempt.leaked.length > 0) {
    return { ...about, ...best, trouble: 'leaked', detail: attempt.leaked.join(' ') };
  }
  return { ...about, ...best, detail: [best.detail, ...attempt.notes].filter(Boolean).join(', ') };
}

type ReferencePixels = Pick<Verdict, 'trouble' | 'detail' | 'measured' | 'sharps'>;

const worse = ({ measured }: ReferencePixels): number => measured?.mae ?? Number.POSITIVE_INFINITY;

async function compare(shown: Reference, result: Buffer, format: OutputType): Promise<ReferencePixels> {
  const moves = OUTPUTS[format].animation && shown.moving !== undefined;
  const frames = moves ? await framesOf(result) : undefined;
  const same = frames === shown.delays.length || !moves ? shown : withoutRepeats(shown);
  const expected = flattened(moves ? (same.moving as Pixels) : same.still, format);
  const actual = await decode(result, format);
  const detail = shown.by === 'sharp' ? '' : 'as Pillow shows it';
  if (actual.width !== expected.width || actual.height !== expected.height) {
    const sizes = `${actual.width}x${actual.height} instead of ${expected.width}x${expected.height}`;
    return { trouble: moves && actual.width === expected.width ? 'frames' : 'size', detail: sizes };
  }
  if (moves && same.delays.length > 1) {
    const timing = await timingOf(result);
    const wanted = `${same.delays} x${same.plays}`;
    if (timing !== wanted) return { trouble: 'timing', detail: `${timing} instead of ${wanted}` };
  }
  const measured = difference(actual, expected);
  const sharps = lossy(format)
    ? await sharpsOwn(expected, format, moves ? shown.still.height : undefined)
    : undefined;
  const fine =
    sharps === undefined
      ? measured.mae <= ROUNDING
      : measured.psnr >= Math.min(sharps - allowed(format), INVISIBLE);
  return { ...(!fine && { trouble: 'differs' }), detail, measured, ...(sharps !== undefined && { sharps }) };
}

function flattened(pixels: Pixels, format: OutputType): Pixels {
  const { alpha } = OUTPUTS[format];
  if (alpha === 'none') return onGrey(pixels, 255);
  if (alpha === 'full') return pixels;
  const data = Buffer.from(pixels.data);
  for (let at = 3; at < data.length; at += 4) data[at] = (data[at] as number) > 127 ? 255 : 0;
  return { ...pixels, data };
}

async function framesOf(result: Buffer): Promise<number> {
  return (await sharp(result, { animated: true }).metadata()).pages ?? 1;
}

async function timingOf(result: Buffer): Promise<string> {
  const { delay = [], loop = 0 } = await sharp(result, { animated: true }).metadata();
  return `${delay} x${loop}`;
}

const lossy = (format: OutputType): boolean => format !== 'png' && format !== 'bmp';

const allowed = (format: OutputType): number => (format === 'gif' ? LESS_IN_GIF : LESS_THAN_SHARP);

/** PSNR of the same picture by sharp's encoder, decoded again; undefined where that does not hold such a picture. */
async function sharpsOwn(
  picture: Pixels,
  format: OutputType,
  pageHeight?: number,
): Promise<number | undefined> {
  const { width, height, data } = picture;
  const image = sharp(data, { raw: { width, height, channels: 4, pageHeight: pageHeight ?? height } });
  const encoded =
    format === 'webp'
      ? image.webp({ quality: 80 })
      : format === 'gif'
        ? image.gif({ dither: 0 })
        : image.jpeg({ quality: 80 });
  const shown = await decode(await encoded.toBuffer()).catch(() => undefined);
  return shown && shown.height === height ? difference(shown, picture).psnr : undefined;
}
