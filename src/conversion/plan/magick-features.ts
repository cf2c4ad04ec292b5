import type { ToolName } from './types.ts';

/** What ImageMagick 6 and 7 do differently, all of it. Pure. */

export interface MagickFeatures {
  /** Who decodes AVIF. 6 loses its transparency and its profile, and is 18 dB off in its colours. */
  readonly avif: Extract<ToolName, 'magick' | 'heif'>;
  /** Who writes WebP that moves. 6 shifts the delays, loses the loop count and leaves junk behind it. */
  readonly animatedWebp: Extract<ToolName, 'magick' | 'img2webp'>;
  /** Whether the frames of a WebP are read with how they meet each other. On 6 every one is laid over what was there. */
  readonly webpBlending: boolean;
}

export const MAGICK_FEATURES: Readonly<Record<6 | 7, MagickFeatures>> = {
  6: { avif: 'heif', animatedWebp: 'img2webp', webpBlending: false },
  7: { avif: 'magick', animatedWebp: 'magick', webpBlending: true },
};
