/** What both are to do, so that their results can be compared. */

export const QUALITY = 80;

/**
 * For sharp, what makes results of the same quality and about the same bytes: its defaults for WebP and JPEG, which
 * are ours; for PNG the filters and level that come nearest to ours in size; for GIF no dithering.
 */
export const SHARP_OPTIONS: Readonly<Record<string, object>> = {
  webp: { quality: QUALITY, effort: 4 },
  jpg: { quality: QUALITY, chromaSubsampling: '4:2:0' },
  png: { compressionLevel: 2, adaptiveFiltering: true },
  gif: { dither: 0 },
};
