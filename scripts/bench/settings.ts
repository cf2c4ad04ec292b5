/**
 * @module Settings that all measurements share, so that their results are comparable, and
 * conversions by sharp with them.
 */
import sharp, { type FormatEnum, type Sharp } from 'sharp';

/** Quality of lossy results, 1 to 100. */
export const QUALITY = 80;

/**
 * Encoder options for sharp that give the same quality and about the same size as the service. WebP
 * and JPEG: the defaults of sharp, which the service also uses. PNG: the filters and level nearest
 * in size. GIF: no dithering.
 */
export const SHARP_OPTIONS: Readonly<Record<string, object>> = {
  webp: { quality: QUALITY, effort: 4 },
  jpg: { quality: QUALITY, chromaSubsampling: '4:2:0' },
  png: { compressionLevel: 2, adaptiveFiltering: true },
  gif: { dither: 0 },
};

/**
 * Converts an image as the service does by default.
 *
 * @param side pixels that neither side of the result exceeds
 */
export function withSharp(input: Buffer | undefined, format: string, side: number | undefined): Sharp {
  const animated = format === 'webp' || format === 'gif';
  const upright = sharp(input, { animated }).autoOrient();
  const box = { width: side, height: side, fit: 'inside', withoutEnlargement: true } as const;
  const resized = side ? upright.resize(box) : upright;
  const image = format === 'jpg' ? resized.flatten({ background: '#fff' }) : resized;
  return image.toFormat((format === 'jpg' ? 'jpeg' : format) as keyof FormatEnum, SHARP_OPTIONS[format]);
}
