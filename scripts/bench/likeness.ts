/**
 * @module Converts every image of a folder with `quality=auto`, with the default quality, and with
 * sharp at the quality that reaches the same SSIM, and compares bytes, SSIM, PSNR and processor
 * time. Another library than that of the service computes the SSIM.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hitchhikersSSIM } from '@blazediff/ssim/hitchhikers-ssim';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { decode, openRaster } from '../../src/regress/image/codec.ts';
import { measureDifference } from '../../src/regress/image/difference.ts';
import { compositeOver, type Raster } from '../../src/regress/image/image.ts';
import type { OutputType } from '../../src/tables/formats.ts';
import { convertWith, type EngineInput, typeOf } from '../../test/helpers/engine.ts';
import { startEngine } from '../engine.ts';
import { cpuMsOf } from '../processes/usage.ts';
import { geometricMean, markdownTable, mean } from '../statistics.ts';
import { QUALITY } from './settings.ts';

/** Formats of results, and the encoder of sharp, if it has one. */
const FORMATS: Readonly<Partial<Record<OutputType, 'webp' | 'jpeg' | 'avif' | undefined>>> = {
  webp: 'webp',
  jpg: 'jpeg',
  avif: 'avif',
  jxl: undefined,
};
/** Sides in pixels of images that are compared: below, a file is mostly its header. */
const MIN_SIDE = 100;
const MAX_PIXELS = 13_000_000;
/** Steps of the search for the quality of sharp, from 1 to 100. */
const BISECTIONS = 6;

interface Encoded {
  readonly bytes: number;
  readonly quality: number;
  readonly ssim: number;
  readonly psnr: number;
}

interface Pair {
  readonly name: string;
  readonly format: OutputType;
  readonly fixed: Encoded;
  readonly auto: Encoded;
  /** Undefined if sharp does not reach the SSIM. */
  readonly sharp: Encoded | undefined;
  /** Processor time of `auto`, relative to the fixed quality. */
  readonly cost: number;
}

/** Compares all images of a folder. Returns a report in Markdown. */
export async function compareLikeness(folder: string, only: string): Promise<string> {
  await using engine = await startEngine('error', { ...process.env, EXTRA_OUTPUTS: 'avif,jxl' });
  const pairs: Pair[] = [];
  for (const name of readdirSync(folder).sort()) {
    const bytes = readFileSync(join(folder, name));
    const type = await typeOf(bytes);
    if (!type || type === 'svg') continue;
    for (const format of Object.keys(FORMATS) as OutputType[]) {
      if (!`${name} → ${format}`.match(only)) continue;
      const pair = await comparePair(engine, { type, bytes }, name, format).catch(() => undefined);
      if (!pair) continue;
      pairs.push(pair);
      process.stderr.write(`${cells(pair).join('  ')}\n`);
    }
  }
  return formatLikeness(pairs);
}

async function comparePair(
  engine: ConversionEngine,
  input: EngineInput,
  name: string,
  format: OutputType,
): Promise<Pair | undefined> {
  const make = (to: OutputType, quality: number | 'auto') =>
    convertWith(
      engine,
      input,
      { format: to, quality, metadata: 'none', frames: 'first' },
      async (result) => ({
        file: readFileSync(result.path),
        quality: result.quality ?? Number(quality),
      }),
    );
  const flat = format === 'jpg' ? 'bmp' : 'png'; // both without loss; a BMP has the white background of a JPEG
  const reference = await rasterOf((await make(flat, QUALITY)).file, flat);
  const { width, height } = reference;
  if (Math.min(width, height) < MIN_SIDE || width * height > MAX_PIXELS) return undefined;
  const judge = async (file: Buffer, quality: number): Promise<Encoded> => ({
    bytes: file.length,
    quality,
    ...similarity(reference, await rasterOf(file, format)),
  });
  const timed = async (quality: number | 'auto') => {
    let made = await make(format, quality);
    const rounds = 3;
    const ms = await cpuMsOf(async () => {
      for (let round = 0; round < rounds; round += 1) made = await make(format, quality);
    });
    return { ...(await judge(made.file, made.quality)), ms: ms / rounds };
  };
  const [fixed, auto] = [await timed(QUALITY), await timed('auto')];
  return {
    name,
    format,
    fixed,
    auto,
    sharp: await sharpAt(reference, format, auto.ssim, judge),
    cost: auto.ms / fixed.ms,
  };
}

async function rasterOf(file: Buffer, type: OutputType): Promise<Raster> {
  return (await decode(file, type)).frames[0] as Raster;
}

/** Returns the mean SSIM over white, and the PSNR over the worse one of white and black. */
function similarity(one: Raster, other: Raster): Pick<Encoded, 'ssim' | 'psnr'> {
  const [a, b] = [compositeOver(one, 255), compositeOver(other, 255)];
  const ssim = hitchhikersSSIM(a.data, b.data, undefined, a.width, a.height, {
    windowSize: 8,
    covPooling: false,
  });
  return { ssim, psnr: measureDifference(one, other, false).psnr };
}

/** Returns the smallest result of sharp with at least this SSIM. */
async function sharpAt(
  reference: Raster,
  format: OutputType,
  ssim: number,
  judge: (file: Buffer, quality: number) => Promise<Encoded>,
): Promise<Encoded | undefined> {
  const encoder = FORMATS[format];
  if (!encoder) return undefined;
  let [low, high] = [1, 100];
  let found: Encoded | undefined;
  for (let step = 0; step < BISECTIONS && low <= high; step += 1) {
    const quality = Math.round((low + high) / 2);
    const image = openRaster(reference);
    const file = await (format === 'jpg' ? image.flatten({ background: '#fff' }) : image)
      [encoder]({ quality })
      .toBuffer();
    const made = await judge(file, quality);
    if (made.ssim >= ssim) {
      found = made;
      high = quality - 1;
    } else low = quality + 1;
  }
  return found;
}

const cells = ({ name, format, fixed, auto, sharp: other, cost }: Pair): string[] => [
  `${name} → ${format}`,
  `${auto.quality}`,
  ...[fixed, auto, other].map((one) => (one ? `${one.bytes}` : '–')),
  ...[fixed, auto].flatMap(({ ssim, psnr }) => [ssim.toFixed(4), psnr.toFixed(1)]),
  cost.toFixed(1),
];

/** Formats a report in Markdown. A format that sharp does not write has no ratio to it. */
export function formatLikeness(pairs: readonly Pair[]): string {
  const rows = [...Map.groupBy(pairs, ({ format }) => format)].map(([format, own]) => {
    const ratio = (values: readonly number[]) => (values.length > 0 ? geometricMean(values).toFixed(2) : '–');
    const psnr = (value: number) => Math.min(value, 60);
    return [
      format,
      `${own.length}`,
      ratio(own.map(({ auto, fixed }) => auto.bytes / fixed.bytes)),
      ratio(own.flatMap(({ auto, sharp: other }) => (other ? auto.bytes / other.bytes : []))),
      `${mean(own.map(({ fixed }) => fixed.ssim)).toFixed(3)}, ${mean(own.map(({ fixed }) => psnr(fixed.psnr))).toFixed(1)}`,
      `${mean(own.map(({ auto }) => auto.ssim)).toFixed(3)}, ${mean(own.map(({ auto }) => psnr(auto.psnr))).toFixed(1)}`,
      `${Math.min(...own.map(({ fixed }) => fixed.ssim)).toFixed(3)}, ${Math.min(...own.map(({ auto }) => auto.ssim)).toFixed(3)}`,
      `${mean(own.map(({ cost }) => cost)).toFixed(1)}, ${Math.max(...own.map(({ cost }) => cost)).toFixed(1)}`,
    ];
  });
  const columns = [
    'Format',
    'Images',
    'Bytes',
    'Bytes, sharp',
    'SSIM, dB: 80',
    'SSIM, dB: auto',
    'Worst SSIM',
    'Time',
  ];
  const worst = [...pairs].sort((a, b) => a.auto.ssim - b.auto.ssim).slice(0, 10);
  const details = [
    'Conversion',
    'Quality',
    'Bytes: 80',
    'auto',
    'sharp',
    'SSIM: 80',
    'dB',
    'SSIM: auto',
    'dB',
    'Time',
  ];
  return [markdownTable(columns, rows), markdownTable(details, worst.map(cells))].join('\n\n');
}
