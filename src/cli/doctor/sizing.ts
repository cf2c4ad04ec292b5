/** @module Measures the conversions per second of this machine (`imagemill doctor --sizing`). */
import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { Config } from '../../config.ts';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { convertMade } from '../../conversion/health-check.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';

/** A kind of conversion of the table in docs/sizing.md. */
interface Kind {
  readonly label: string;
  readonly width: number;
  readonly height: number;
  readonly options: Pick<ConvertOptions, 'format' | 'width' | 'height'>;
}

const THUMBNAIL = { width: 300, height: 300 };

/** The columns of the table. */
export const KINDS: readonly Kind[] = [
  { label: '0.75 MP to JPEG, 300 px', width: 1000, height: 750, options: { format: 'jpg', ...THUMBNAIL } },
  { label: '0.75 MP to WebP', width: 1000, height: 750, options: { format: 'webp' } },
  { label: '3 MP to WebP, 300 px', width: 2000, height: 1500, options: { format: 'webp', ...THUMBNAIL } },
  { label: '3 MP to WebP', width: 2000, height: 1500, options: { format: 'webp' } },
  { label: '3 MP to PNG', width: 2000, height: 1500, options: { format: 'png' } },
];

/** Duration of all measurements together, in ms. */
const TOTAL_MS = 60_000;

type Measurement = Readonly<{ label: string; perSecond: number }>;

/**
 * Measures each kind of conversion on all processors.
 *
 * @param durationMs duration of all measurements together
 * @param onKind called before each measurement
 */
export async function measureSizing(
  engine: ConversionEngine,
  { CONCURRENCY }: Config,
  onKind: (label: string) => void,
  durationMs = TOTAL_MS,
): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (const { label, width, height, options } of KINDS) {
    onKind(label);
    const photo = { type: 'jpg', bytes: await createPhoto(engine, width, height), ...IMAGE } as const;
    const deadline = performance.now() + durationMs / KINDS.length;
    const began = performance.now();
    let count = 0;
    const worker = async (): Promise<void> => {
      do {
        await convertMade(engine, photo, options, () => {});
        count += 1;
      } while (performance.now() < deadline);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    measurements.push({ label, perSecond: (count / (performance.now() - began)) * 1000 });
  }
  return measurements;
}

/** Formats the row of the table in docs/sizing.md. */
export function formatSizingRow(
  measurements: readonly Measurement[],
  { magick }: ConversionEngine['toolchain'],
  { CONCURRENCY }: Config,
): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown';
  const rates = measurements.map(({ perSecond }) => perSecond.toFixed(perSecond < 10 ? 1 : 0));
  return `| ${[model, CONCURRENCY, magick?.version ?? 'none', ...rates].join(' | ')} |`;
}

const IMAGE = { label: 'The image', client: 'sizing' };

/** Creates a JPEG that takes about as many bits per pixel as a photo. */
function createPhoto(engine: ConversionEngine, width: number, height: number): Promise<Buffer> {
  const bitmap = { type: 'bmp', bytes: createBitmap(width, height), ...IMAGE } as const;
  return convertMade(engine, bitmap, { format: 'jpg' }, ({ path }) => readFile(path));
}

/** Amplitudes of the waves in the image, by wavelength in pixels. Short waves have low amplitudes, as in photos. */
const WAVES = [
  [400, 60],
  [97, 30],
  [23, 14],
  [5, 5],
] as const;
const HEADER_BYTES = 54;

/** Creates a BMP of 24 bits per pixel with overlapping waves and some noise. */
function createBitmap(width: number, height: number): Buffer {
  const stride = Math.ceil((width * 3) / 4) * 4;
  const bitmap = Buffer.alloc(HEADER_BYTES + stride * height);
  bitmap.write('BM');
  for (const [at, value] of [
    [2, bitmap.length],
    [10, HEADER_BYTES],
    [14, 40],
    [18, width],
    [22, height],
    [26, 1 + (24 << 16)],
  ] as const)
    bitmap.writeUInt32LE(value, at);
  let noise = 1;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      let value = 128;
      for (const [length, wave] of WAVES)
        value += wave * Math.sin((x + y * 0.7) / length) * Math.cos(y / length);
      noise = (Math.imul(noise, 1103515245) + 12345) >>> 0;
      const level = value + (noise >>> 28);
      for (let channel = 0; channel < 3; channel += 1)
        bitmap[HEADER_BYTES + y * stride + x * 3 + channel] = Math.max(0, Math.min(255, level + channel * 9));
    }
  }
  return bitmap;
}
