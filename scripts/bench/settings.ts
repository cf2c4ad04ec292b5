/** @module Settings shared by both servers, so that their results are comparable. */

/** Quality of lossy results, 1 to 100. */
export const QUALITY = 80;

/**
 * Encoder options for sharp that give the same quality and about the same size as the service. WebP and JPEG: the
 * defaults of sharp, which the service also uses. PNG: the filters and level nearest in size. GIF: no dithering.
 */
export const SHARP_OPTIONS: Readonly<Record<string, object>> = {
  webp: { quality: QUALITY, effort: 4 },
  jpg: { quality: QUALITY, chromaSubsampling: '4:2:0' },
  png: { compressionLevel: 2, adaptiveFiltering: true },
  gif: { dither: 0 },
};
