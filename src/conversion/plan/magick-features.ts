/** @module Differences between ImageMagick 6 and 7 that plans depend on. Pure. */
import type { ToolName } from './types.ts';

/** Features of a major version of ImageMagick. */
export interface MagickFeatures {
  /** Tool that decodes AVIF and HEIC. ImageMagick 6 loses transparency and profile, and its colours are 18 dB off. */
  readonly heif: Extract<ToolName, 'magick' | 'heif'>;
  /** Tool that writes animated WebP. ImageMagick 6 shifts the delays, loses the loop count and appends invalid data. */
  readonly animatedWebp: Extract<ToolName, 'magick' | 'img2webp'>;
  /** Whether the blending method of WebP frames is read. ImageMagick 6 blends every frame with those before it. */
  readonly webpBlending: boolean;
}

/** The features by major version. */
export const MAGICK_FEATURES: Readonly<Record<6 | 7, MagickFeatures>> = {
  6: { heif: 'heif', animatedWebp: 'img2webp', webpBlending: false },
  7: { heif: 'magick', animatedWebp: 'magick', webpBlending: true },
};
