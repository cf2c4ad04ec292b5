/** @module The notes of results: differences between an image and its result, or damage of the image. Part of the public API. */

/** One row per token of `X-Conversion-Notes`. */
export const NOTES = {
  'first-frame-only': {
    api: 'only the first frame of an animation was converted',
    page: 'Only the first frame of the animation was converted.',
  },
  'first-page-only': {
    api: 'only the first page of a TIFF was converted',
    page: 'Only the first page was converted.',
  },
  'alpha-flattened': {
    api: 'transparency was replaced by the background',
    page: 'Transparent areas are now white.',
  },
  'colour-converted-to-srgb': {
    api: 'colours were converted to sRGB, for example from Display P3, Adobe RGB, CMYK or Lab',
    page: 'The colours were converted to sRGB.',
  },
  'truncated-input': {
    api: 'the file is truncated or damaged, and the result shows the part that could be read',
    page: 'The file is truncated or damaged. Only part of it could be read.',
  },
  'quality-lowered': {
    api: 'the quality is lower than requested, so that the result does not exceed `max_bytes`',
    page: 'The quality was lowered, so that the file is small enough.',
  },
  'partial-alpha-lost': {
    api: 'pixels that were partly transparent are opaque or fully transparent',
    page: 'GIF has no partial transparency: those pixels are opaque or transparent.',
  },
  'svg-features-ignored': {
    api: 'the SVG uses features that were not rendered, such as HTML or certain CSS',
    page: 'The SVG uses features that were not drawn, such as HTML or certain CSS.',
  },
  'metadata-partly-kept': {
    api: 'EXIF, IPTC or XMP metadata could not be kept',
    page: 'Some of the metadata could not be kept.',
  },
} as const;

/** Token of a note. */
export type Note = keyof typeof NOTES;
