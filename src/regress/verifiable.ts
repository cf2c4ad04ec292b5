/** @module Which results can be verified, and what a verification states. Loads no decoder. */
import type { ConvertOptions } from '../conversion/plan/types.ts';
import { type InputType, OUTPUTS } from '../formats.ts';

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

/** What was found. */
export interface Verification {
  readonly mode: VerifyMode;
  readonly passed: boolean;
  /** Why it did not pass. */
  readonly reason?: string;
  /** Libraries that have decoded the files. */
  readonly decoder: string;
  /** How many times smaller the sides of the images were that were compared, if they were. */
  readonly reduction?: number;
  /** Largest difference of a channel, 0 to 255. */
  readonly max?: number;
  /** PSNR in dB; undefined if equal. */
  readonly psnr?: number;
  /** Upper left corner of the worst block, and its frame, from 0. */
  readonly worst?: { readonly x: number; readonly y: number; readonly frame: number };
  /** The worst place as WebP in base64: expected beside found. */
  readonly picture?: string;
}

/** Options that `pixels` does not allow, because another program resizes differently. */
export const RESIZING = ['width', 'height', 'crop'] as const;

/** Returns why results with these options cannot be verified; undefined if they can. */
export function findUnverifiable(mode: VerifyMode, options: ConvertOptions): string | undefined {
  const { format, lossless = false, quality, stripMetadata } = options;
  const { label } = OUTPUTS[format];
  if (options.fit === 'cover' && options.position === 'attention')
    return 'another program chooses another part for --position attention';
  if (mode === 'visual') return undefined;
  if (format === 'jxl' && quality < 100 && !(lossless && !stripMetadata))
    return `${label} is lossy here: use visual, --quality 100, or for JPEG --lossless --keep-metadata`;
  if (!['png', 'bmp', 'tiff', 'jxl'].includes(format) && !(format === 'webp' && lossless))
    return `${label} is lossy here: use visual, png, bmp, tiff, or webp with --lossless`;
  const resizing = RESIZING.find((name) => options[name] !== undefined);
  return resizing && `--${resizing} changes every sample: use visual`;
}
