import type { ToolName } from './types.ts';

/** What ImageMagick 6 and 7 do differently, all of it. Pure. */

export interface MagickFeatures {
  /** Which tool decodes AVIF and HEIC. 6 loses their transparency and profile, and is 18 dB off in their colours. */
  readonly heif: Extract<ToolName, 'magick' | 'heif'>;
  /** Who writes WebP that moves. 6 shifts the delays, loses the loop count and leaves junk behind it. */
  readonly animatedWebp: Extract<ToolName, 'magick' | 'img2webp'>;
  /** Whether the frames of a WebP are read with how they meet each other. On 6 every one is laid over what was there. */
  readonly webpBlending: boolean;
}

export const MAGICK_FEATURES: Readonly<Record<6 | 7, MagickFeatures>> = {
  6: { heif: 'heif', animatedWebp: 'img2webp', webpBlending: false },
  7: { heif: 'magick', animatedWebp: 'magick', webpBlending: true },
};
