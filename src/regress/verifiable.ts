/** @module Which results can be verified, and what a verification states. Loads no decoder. */
import type { ConvertOptions } from '../conversion/plan/types.ts';
import { type InputType, OUTPUTS } from '../tables/formats.ts';
import { flagName, isOptionSet } from '../tables/options.ts';

/** How a result is verified: by equal samples, or by the thresholds of `regress`. */
export type VerifyMode = 'pixels' | 'visual';

/** A result to verify: paths of the files, and how the source was converted. */
export interface VerifyRequest {
  readonly mode: VerifyMode;
  readonly type: InputType;
  readonly source: string;
  readonly result: string;
  readonly options: ConvertOptions;
}

export interface Verification {
  readonly mode: VerifyMode;
  readonly passed: boolean;
  readonly reason?: string | undefined;
  /** Libraries that have decoded the files. */
  readonly decoder: string;
  /** How many times smaller the sides of the images were that were compared, if they were. */
  readonly reduction?: number;
  /** Largest difference of a channel, 0 to 255. */
  readonly max?: number;
  /** PSNR in dB; undefined if equal. */
  readonly psnr?: number | undefined;
  /** Upper left corner of the worst block. */
  readonly worst?: { readonly x: number; readonly y: number };
  /** The worst place as WebP in base64: expected beside found. */
  readonly picture?: string | undefined;
}

/** Options with the size of the source, and those that reduce it. Others are not verified. */
const SAME_SIZE: readonly string[] = [
  'format',
  'accepted',
  'quality',
  'maxBytes',
  'lossless',
  'metadata',
  'frames',
  'pages',
  'background',
] satisfies (keyof ConvertOptions)[];
const REDUCING: readonly string[] = ['width', 'height'] satisfies (keyof ConvertOptions)[];

/** Returns why results with these options cannot be verified; undefined if they can. */
export function findUnverifiable(mode: VerifyMode, options: ConvertOptions): string | undefined {
  const { format, lossless = false, quality, metadata } = options;
  const { label, palette = false, quality: isLossy, losslessQuality = false } = OUTPUTS[format];
  if (options.smallest) return '--format smallest is not verified';
  if (format === 'pdf' || format === 'ico') return `--format ${format} is not verified`;
  const given = Object.entries(options).flatMap(([name, value]) => (isOptionSet(name, value) ? name : []));
  const other = given.find((name) => !SAME_SIZE.includes(name) && !REDUCING.includes(name));
  if (other)
    return `${flagName(other)} is not verified, only results with the size of their source or reduced by --width and --height`;
  if (options.pages && options.pages !== 'all' && options.pages !== 'first')
    return '--pages with numbers is not verified';
  if (mode === 'visual') return undefined;
  if (losslessQuality && quality !== 100 && !(lossless && metadata === 'all'))
    return `${label} is lossy here: use visual, --quality 100, or for JPEG --lossless --metadata all`;
  if (palette || (isLossy && !losslessQuality && !(OUTPUTS[format].lossless && lossless)))
    return `${label} is lossy here: use visual, png, bmp, tiff, or webp with --lossless`;
  const reducing = given.find((name) => REDUCING.includes(name));
  return reducing && `--${reducing} changes every sample: use visual`;
}
