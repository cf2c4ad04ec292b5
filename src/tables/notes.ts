/** @module The notes of results: differences from the image, or damage. Part of the public API. */

interface NoteRow {
  /** Description in the API reference. */
  readonly api: string;
  /** Sentence on the page. */
  readonly page: string;
  /** Whether the result lacks something that the image has. */
  readonly loss: boolean;
}

/** One row per token of `X-Conversion-Notes`. */
export const NOTES = {
  'first-frame-only': {
    api: 'only the first frame of an animation was converted',
    page: 'Only the first frame of the animation was converted.',
    loss: true,
  },
  'first-page-only': {
    api: 'only the first page of a TIFF or a PDF was converted',
    page: 'Only the first page was converted.',
    loss: true,
  },
  'alpha-flattened': {
    api: 'transparency was replaced by the background',
    page: 'Transparent areas now have the colour of the background.',
    loss: true,
  },
  'colour-converted-to-srgb': {
    api: 'colours were converted to sRGB, for example from Display P3, Adobe RGB, CMYK or Lab',
    page: 'The colours were converted to sRGB.',
    loss: false,
  },
  'hdr-removed': {
    api: 'the gain map, with which some screens show the image in high dynamic range, was removed; only a JPEG that `lossless` stores in a JPEG XL keeps it',
    page: 'The image is not HDR any more: the gain map for HDR screens was removed.',
    loss: true,
  },
  'not-trimmed': {
    api: 'the image, or a page of it, has one colour within the tolerance of `trim`, and was not trimmed',
    page: 'An image of one colour has nothing to trim.',
    loss: false,
  },
  'truncated-input': {
    api: 'the file is truncated or damaged, and the result shows the part that could be read: missing rows of a PNG are transparent, and those of a JPEG grey',
    page: 'The file is truncated or damaged. Only part of it could be read.',
    loss: true,
  },
  'quality-lowered': {
    api: 'the quality is lower than requested, so that the result does not exceed `max_bytes`',
    page: 'The quality was lowered, so that the file is small enough.',
    loss: false,
  },
  'quality-reduced': {
    api: 'with `quality=auto`, the quality is lower than that which looks the same, so that the result is not larger than its source of the same format and size',
    page: 'The quality was lowered, so that the file is not larger than the original.',
    loss: false,
  },
  'larger-than-source': {
    api: 'with `quality=auto`, the result is larger than its source, although both have the same format and size',
    page: 'The file is larger than the original, which was compressed better.',
    loss: false,
  },
  'partial-alpha-lost': {
    api: 'pixels that were partly transparent are opaque or fully transparent',
    page: 'GIF has no partial transparency: those pixels are opaque or transparent.',
    loss: true,
  },
  'timing-changed': {
    api: 'a GIF lasts longer or shorter than the animation, by more than 1%: its delays are hundredths of a second, from 0.02 to 655.35 s',
    page: 'The GIF lasts longer or shorter than the animation.',
    loss: true,
  },
  'svg-features-ignored': {
    api: 'the SVG uses features that were not rendered, such as HTML or certain CSS',
    page: 'The SVG uses features that were not drawn, such as HTML or certain CSS.',
    loss: true,
  },
  'metadata-partly-kept': {
    api: 'the result lacks EXIF, IPTC or XMP with `metadata=all`, or a part of the copyright with `metadata=copyright`, or metadata of the file could not be read',
    page: 'Some of the metadata could not be kept.',
    loss: true,
  },
  'files-skipped': {
    api: 'files that could not be converted are not in the combined file',
    page: 'Files that could not be converted are missing.',
    loss: true,
  },
  'unknown-fields-ignored': {
    api: 'the form has text fields with unknown names, which were ignored',
    page: 'The server did not know all options, and ignored some.',
    loss: false,
  },
} as const satisfies Readonly<Record<string, NoteRow>>;

/** Token of a note. */
export type Note = keyof typeof NOTES;
