/**
 * @module Compares the thumbnails of the service and of sharp with the same reference: all pixels decoded, and resized
 * with Pillow's Lanczos filter.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { type Difference, measureDifference } from '../../src/regress/image/difference.ts';
import type { Raster } from '../../src/regress/image/image.ts';
import { PYTHON } from '../../test/helpers/pillow.ts';
import { pipe } from '../../test/helpers/process.ts';
import { percentile } from './load.ts';
import type { Picture } from './quality-images.ts';

/** Width and height of the boxes that thumbnails fit in, in pixels. */
const SIZES = [150, 300, 500, 1200];
const RESIZER = new URL('lanczos.py', import.meta.url).pathname;

/** The differences of one thumbnail from the reference. */
export interface Comparison {
  readonly name: string;
  readonly size: number;
  readonly ours: Difference;
  readonly sharp: Difference;
}

/**
 * Creates thumbnails of an image in all sizes below its own, and compares them. The width and height of sharp's
 * thumbnails can differ by one pixel, so each thumbnail is compared with a reference of the same size.
 */
export async function compareThumbnails(engine: ConversionEngine, picture: Picture): Promise<Comparison[]> {
  const whole = await rasterize(picture.bytes);
  const sizes = SIZES.filter((size) => size < Math.max(whole.width, whole.height));
  const thumbnails: Raster[] = [];
  for (const size of sizes) {
    thumbnails.push(await rasterize(await convertByEngine(engine, picture, size)));
    thumbnails.push(await resizeBySharp(picture, size));
  }
  const references = await resizeByPillow(whole, thumbnails);
  const differences = thumbnails.map((thumbnail, at) =>
    measureDifference(thumbnail, references[at] as Raster),
  );
  return sizes.map((size, at) => ({
    name: picture.name,
    size,
    ours: differences[2 * at] as Difference,
    sharp: differences[2 * at + 1] as Difference,
  }));
}

async function rasterize(bytes: Buffer): Promise<Raster> {
  return toRaster(sharp(bytes));
}

/** Resizes an image like the sharp server of the benchmark, with sharp's default of shrink-on-load. */
async function resizeBySharp({ bytes }: Picture, size: number): Promise<Raster> {
  return toRaster(sharp(bytes).autoOrient().resize({ width: size, height: size, fit: 'inside' }));
}

async function toRaster(image: Sharp): Promise<Raster> {
  const pixels = image.toColourspace('srgb').ensureAlpha().raw({ depth: 'uchar' });
  const { data, info } = await pixels.toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data };
}

async function convertByEngine(engine: ConversionEngine, picture: Picture, size: number): Promise<Buffer> {
  const workspace = await engine.workspaces.open();
  try {
    const folder = await workspace.folder('thumbnail');
    await writeFile(join(folder, INPUT_FILE), picture.bytes);
    const options = { format: 'png', quality: 80, stripMetadata: true, width: size, height: size } as const;
    const file = { folder, type: picture.type, label: picture.name };
    const { path } = await engine.convert(file, options, new AbortController().signal);
    return await readFile(path);
  } finally {
    await workspace.remove();
  }
}

type Size = Pick<Raster, 'width' | 'height'>;

async function resizeByPillow(whole: Raster, sizes: readonly Size[]): Promise<Raster[]> {
  const names = [whole, ...sizes].map(({ width, height }) => `${width}x${height}`);
  const output = await pipe(PYTHON, [RESIZER, ...names], whole.data);
  let start = 0;
  return sizes.map(({ width, height }) => {
    const data = output.subarray(start, start + width * height * 4);
    start += data.length;
    return { width, height, data };
  });
}

/** Formats the worst thumbnail of one picture by each program, as one line. */
export function formatProgress(comparisons: readonly Comparison[]): string {
  const worst = (program: 'ours' | 'sharp'): string =>
    formatPsnr(Math.min(...comparisons.map((one) => one[program].psnr)));
  return `${comparisons[0]?.name}: ${worst('ours')}, sharp ${worst('sharp')}`;
}

/** Formats the comparisons as Markdown: a table of both programs, and the worst thumbnails of the service. */
export function formatQuality(comparisons: readonly Comparison[]): string {
  const pictures = new Set(comparisons.map(({ name }) => name)).size;
  const worst = [...comparisons].sort((a, b) => a.ours.psnr - b.ours.psnr).slice(0, 10);
  return [
    `${comparisons.length} thumbnails of ${pictures} images, ${SIZES.join(', ')} px, compared with all pixels decoded and resized with Pillow's Lanczos filter.`,
    [
      '| | PSNR: worst | 10th percentile | median | SSIM: worst | 10th percentile | median |',
      '| --- | --- | --- | --- | --- | --- | --- |',
      formatRow(
        'imagemill',
        comparisons.map(({ ours }) => ours),
      ),
      formatRow(
        'sharp',
        comparisons.map((one) => one.sharp),
      ),
    ].join('\n'),
    'The worst of imagemill:',
    [
      '| image | px | imagemill | sharp |',
      '| --- | --- | --- | --- |',
      ...worst.map(
        ({ name, size, ours, sharp: others }) =>
          `| ${name} | ${size} | ${formatPsnr(ours.psnr)}, ${formatSsim(ours.ssim)} | ${formatPsnr(others.psnr)}, ${formatSsim(others.ssim)} |`,
      ),
    ].join('\n'),
  ].join('\n\n');
}

function formatRow(name: string, differences: readonly Difference[]): string {
  const psnr = differences.map((one) => one.psnr).sort((a, b) => a - b);
  const ssim = differences.map((one) => one.ssim ?? 1).sort((a, b) => a - b);
  const figures = [
    ...[0, 0.1, 0.5].map((share) => formatPsnr(percentile(psnr, share))),
    ...[0, 0.1, 0.5].map((share) => formatSsim(percentile(ssim, share))),
  ];
  return `| ${name} | ${figures.join(' | ')} |`;
}

const formatPsnr = (psnr: number): string => (Number.isFinite(psnr) ? `${psnr.toFixed(1)} dB` : 'equal');
const formatSsim = (ssim = 1): string => ssim.toFixed(4);
