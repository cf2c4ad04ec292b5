/** @module Types of the API. `npm run client-types` writes them from the OpenAPI document. */
// biome-ignore-all format: generated

/** Name of an output format. The service must have it enabled. */
export type OutputFormat =
  | 'webp' | 'png' | 'jpg' | 'gif' | 'bmp' | 'pdf' | 'avif' | 'jxl' | 'tiff' | 'ico';

/** Name of an input format. */
export type InputFormat =
  | 'png' | 'jpg' | 'gif' | 'bmp' | 'tiff' | 'svg' | 'avif' | 'ico' | 'webp' | 'heic' | 'jxl' |
  'jp2' | 'psd' | 'cur' | 'pdf';

/** Difference between an image and its result, or damage of the image. */
export type Note =
  | 'first-frame-only' | 'first-page-only' | 'alpha-flattened' | 'colour-converted-to-srgb' |
  'hdr-removed' | 'not-trimmed' | 'truncated-input' | 'quality-lowered' | 'quality-reduced' |
  'larger-than-source' | 'partial-alpha-lost' | 'timing-changed' | 'svg-features-ignored' |
  'metadata-partly-kept' | 'files-skipped' | 'unknown-fields-ignored';

/** Kind of what metadata gives away. */
export type RevealedKind =
  | 'place' | 'time' | 'camera' | 'owner' | 'software' | 'comment' | 'thumbnail';

/** Names of errors, the same in all versions. */
export type Reason =
  | 'malformed_request' | 'host_invalid' | 'incomplete_body' | 'chunks_too_small' | 'not_multipart'
  | 'malformed_multipart' | 'no_file' | 'file_sent_as_text' | 'empty_file' | 'unexpected_file_field'
  | 'too_many_files' | 'too_many_fields' | 'field_in_query' | 'unknown_parameter' | 'field_repeated'
  | 'field_invalid' | 'not_available' | 'conflicting_formats' | 'too_many_variants' |
  'variant_invalid' | 'bad_archive' | 'corrupt_image' | 'unsupported_encoding' | 'file_encrypted' |
  'pdf_to_pdf' | 'output_dimension_too_large' | 'page_missing' | 'crop_outside' |
  'bytes_unreachable' | 'client_id_invalid' | 'api_key_missing' | 'api_key_invalid' | 'not_found' |
  'method_not_allowed' | 'not_acceptable' | 'request_timeout' | 'upload_timeout' | 'upload_too_slow'
  | 'precondition_failed' | 'file_too_large' | 'too_many_pixels' | 'watermark_too_large' |
  'input_dimension_too_large' | 'drawing_too_large' | 'result_too_large' |
  'result_too_large_in_total' | 'variants_too_large_in_total' | 'too_many_frames' |
  'too_many_total_pixels' | 'resource_limit_exceeded' | 'conversion_timeout' | 'unsupported_type' |
  'conversion_unsupported' | 'unsupported_content_encoding' | 'range_not_satisfiable' |
  'rate_limited' | 'headers_too_large' | 'internal' | 'method_unknown' | 'transfer_coding' |
  'queue_full' | 'overloaded' | 'disk_full' | 'temp_dir_unwritable' | 'shutting_down' |
  'too_many_connections' | 'converter_unavailable';

/** Part that `cover` keeps, and place of an image in the box of `contain`. */
export type Position =
  | 'center' | 'top' | 'right top' | 'right' | 'right bottom' | 'bottom' | 'left bottom' | 'left' |
  'left top' | 'attention' | `${number}%,${number}%`;

/** Options of one result. `/docs` of the service describes them. */
export interface ResultOptions {
  /**
   * `auto` chooses the best format that the header `Accept` permits, `smallest` the one with the
   * smallest result. Default: `webp`.
   */
  readonly output_format?: OutputFormat | 'auto' | 'smallest' | undefined;
  /** The same as `output_format`. */
  readonly format?: OutputFormat | 'auto' | 'smallest' | undefined;
  /**
   * 1 gives the smallest file, 100 the best quality. Applies to webp, jpg, pdf, avif, jxl. 100 is
   * lossless for jxl. `auto` is the lowest quality from 30 to 95 at which a still image looks the
   * same, as webp, jpg, avif, jxl; `X-Image-Quality` states it. Animations and other formats have
   * the default. Default: `80`.
   */
  readonly quality?: 'auto' | number | undefined;
  /**
   * Degrees by which the upright image is rotated clockwise. `width`, `height` and `crop` apply to
   * the rotated image. Default: `0`.
   */
  readonly rotate?: 0 | 90 | 180 | 270 | undefined;
  /** Reflects the image, after `rotate` and before `crop`. */
  readonly flip?: 'horizontal' | 'vertical' | 'both' | undefined;
  /**
   * Part of the image to convert, as `left,top,width,height` in pixels of the upright image, after
   * `rotate` and `flip`, or with a `%` in percent of its side. Applies before `width`, `height` and
   * `fit`. An error if it is not inside of the image. Applies to each frame and each page.
   */
  readonly crop?: string | undefined;
  /**
   * Removes a border of the colour of the top left corner, after `crop`: `yes`, `no`, or the
   * tolerance in percent. `yes` is 4, `0` removes only pixels of exactly this colour. An image of
   * one colour is kept.
   */
  readonly trim?: 'yes' | 'no' | number | undefined;
  /**
   * Maximum width in pixels. The image is scaled to fit and keeps its aspect ratio, unless `fit` is
   * set. It is enlarged only with `enlarge`. An SVG is rendered at the requested size.
   */
  readonly width?: number | undefined;
  /** Maximum height in pixels, as for `width`. */
  readonly height?: number | undefined;
  /**
   * Size of the result in percent of the image after `rotate`, `crop` and `trim`, instead of
   * `width` and `height`. An image is enlarged only with `enlarge`, an SVG always.
   */
  readonly scale?: number | undefined;
  /**
   * How the image fits into `width` and `height`, as in sharp. `inside`: no larger than either.
   * `cover`: exactly this size, cropped. `contain`: exactly this size, with borders. `fill`:
   * exactly this size, stretched. All except `inside` require both `width` and `height`. Without
   * `enlarge`, a smaller image is not enlarged: `cover` only crops, `contain` adds wider borders,
   * `fill` only shrinks. Default: `inside`.
   */
  readonly fit?: 'inside' | 'cover' | 'contain' | 'fill' | undefined;
  /**
   * The part that `cover` keeps, and the place where `contain` puts the image, in any case. With
   * `attention`, edges, skin tones and saturation decide what `cover` keeps. A point, as `left,top`
   * in percent of the image after `crop`, is as near to the centre of `cover` as the edges permit.
   * Also `centre`, `north`, `northeast`, `east`, `southeast`, `south`, `southwest`, `west`,
   * `northwest`. Default: `center`.
   */
  readonly position?: Position | undefined;
  /**
   * Blurs the image by a Gaussian function after the resize. The value is its standard deviation
   * (sigma) in pixels of the result.
   */
  readonly blur?: number | undefined;
  /**
   * Sharpens the image after `blur`: adds its difference from the image blurred by a Gaussian
   * function. The value is the standard deviation (sigma) of the function in pixels of the result.
   */
  readonly sharpen?: number | undefined;
  /**
   * Whether the result has no colours, only the luminance of sRGB and transparency. The colour of
   * `background` stays. Default: `false`.
   */
  readonly greyscale?: boolean | undefined;
  /**
   * Place of the watermark, with the words of `position` except `attention`. Its distance from the
   * edges is 3% of the shorter side. Default: `right bottom`.
   */
  readonly watermark_position?: Exclude<Position, 'attention'> | undefined;
  /** Opacity of the watermark in percent. Default: `100`. */
  readonly watermark_opacity?: number | undefined;
  /**
   * Width of the watermark in percent of the width of the picture. A watermark that would be higher
   * than the picture is as high as it. Default: `20`.
   */
  readonly watermark_scale?: number | undefined;
  /**
   * Whether the watermark is repeated over the whole picture, from `watermark_position`, at
   * distances of 3% of the shorter side. Default: `false`.
   */
  readonly watermark_repeat?: boolean | undefined;
  /**
   * Whether an image can be enlarged. An SVG is always rendered at the requested size. Default:
   * `false`.
   */
  readonly enlarge?: boolean | undefined;
  /**
   * Whether a WebP or PDF has exactly the pixels of the image, regardless of `quality`. A PDF
   * contains an unedited JPEG as it is. With `metadata=all`, an upright JPEG becomes a JPEG XL from
   * which its bytes can be restored. Otherwise ignored. Excludes `max_bytes`. Default: `false`.
   */
  readonly lossless?: boolean | undefined;
  /**
   * Maximum number of colours, with transparency as one of them, for png, gif. Each frame of an
   * animation has as many. Default: a PNG keeps all colours, and a GIF has up to 256. Otherwise
   * ignored.
   */
  readonly colors?: number | undefined;
  /**
   * Whether pixels of different colours stand for the colours that `colors` leaves out. Animations
   * are never dithered. No effect without `colors`. Default: `true`.
   */
  readonly dither?: boolean | undefined;
  /**
   * Maximum size of the result in bytes. If the result is larger at `quality`, the quality is
   * lowered as far as necessary, but not below 10. `X-Image-Quality` states the quality that was
   * used. If that is not sufficient, the request fails. Applies to webp, jpg, avif, jxl; an error
   * for other formats.
   */
  readonly max_bytes?: number | undefined;
  /**
   * Metadata of the result. `none`: none, and the colours are sRGB. `copyright`: the author, the
   * copyright, the credit line and the terms of use, as EXIF, IPTC and XMP state them, and the
   * colour profile, but no place, no camera and no thumbnail; for webp, png, jpg, avif, jxl, tiff.
   * `all`: EXIF, IPTC, XMP and the colour profile, if the format supports them. Default: `none`.
   */
  readonly metadata?: 'none' | 'copyright' | 'all' | undefined;
  /**
   * Frames of an animation to convert. Default: all if the output can be animated, otherwise the
   * first. A PDF gets one page per frame only with `all`.
   */
  readonly frames?: 'all' | 'first' | undefined;
  /**
   * Pages of a TIFF or a PDF to convert: `all`, `first`, or numbers and ranges from 1, such as
   * `1-3,5`. A PDF or TIFF has all of them, in the order of the file. Other formats have the first
   * page; of several numbers, each page becomes an image, `NAME-p1` and so on, and the response is
   * an archive. Default: all.
   */
  readonly pages?: 'all' | 'first' | string | undefined;
  /**
   * Pixels per inch of a page of a PDF, before it is fitted into `width` and `height`. Default:
   * 144. For the output format pdf, pixels per inch of a picture on its page, instead of what its
   * file states. Otherwise ignored.
   */
  readonly dpi?: number | undefined;
  /**
   * Size of the pages of a PDF: that of the picture (`image`), `a3`, `a4`, `a5`, `letter`, `legal`,
   * or `WIDTHxHEIGHT` in millimetres. The picture is scaled to the page, and never cropped. Other
   * formats ignore it. Default: `image`.
   */
  readonly page_size?: 'image' | 'a3' | 'a4' | 'a5' | 'letter' | 'legal' | string | undefined;
  /**
   * Margin of the pages of a PDF in millimetres, on each side. Other formats ignore it. Default:
   * `0`.
   */
  readonly page_margin?: number | undefined;
  /**
   * Orientation of the pages of a PDF, by default that of the picture. The others need a
   * `page_size` other than `image`. Default: `auto`.
   */
  readonly page_orientation?: 'auto' | 'portrait' | 'landscape' | undefined;
  /**
   * Colour that replaces transparency if the format has none, and colour of the borders of
   * `fit=contain`, as `#rgb`, `#rrggbb` or a name of CSS. Default: white, and transparent for
   * borders if the format has transparency.
   */
  readonly background?: string | undefined;
  /**
   * Another field for two values of `metadata`: `true` is `none`, and `false` is `all`. An error if
   * `metadata` has another value.
   */
  readonly strip_metadata?: boolean | undefined;
}

/** Options of `convert`. */
export interface ConvertOptions extends ResultOptions {
  /**
   * An image that is put on each result, at most 10 MiB and 25 megapixels. It is sent in a form.
   */
  readonly watermark?: Blob | undefined;
  /** Several results, instead of one. The response is a ZIP archive. */
  readonly variants?: readonly (ResultOptions & { readonly name: string })[] | undefined;
  /**
   * Whether all results become one file, instead of an archive: the pages of a PDF or a TIFF, or
   * the frames of a GIF or a WebP. Frames have the size of the first picture, or `width` and
   * `height`, with `fit=contain` unless `fit` is set, and are the first ones of animations. `GET
   * /formats` lists the formats that work here. Excludes `variants` and `max_bytes`, and for frames
   * also `metadata` and `frames=all`. Default: `false`.
   */
  readonly combine?: boolean | undefined;
  /**
   * Order of the files in a combined file. `request`: that of the request. `name`: by their names,
   * as in file managers: `IMG_2` before `IMG_10`. Default: `request`.
   */
  readonly order?: 'request' | 'name' | undefined;
  /**
   * Name of a combined file. Folders and control characters are removed, and the extension of the
   * format is added. Default: `combined`.
   */
  readonly name?: string | undefined;
  /**
   * Time of each frame of a combined GIF or WebP in milliseconds. A GIF has hundredths of a second.
   * Default: `500`.
   */
  readonly delay?: number | undefined;
  /** How often a combined GIF or WebP is played. 0 means forever. Default: `0`. */
  readonly loop?: number | undefined;
  /**
   * What to do if a variant fails. `fail`: the request fails, and the message names the variant.
   * `skip`: `manifest.json` and `errors.json` list the errors. Default: `fail`.
   */
  readonly on_error?: 'fail' | 'skip' | undefined;
  /** Name of options that the operator has defined. */
  readonly preset?: string | undefined;
}

/** Options of `batch`. */
export interface BatchOptions extends ConvertOptions {
  /**
   * What to do if a file fails. `fail`: the request fails with the status of that file, and the
   * message names the file. `skip`: the archive contains the other files, and its `errors.json`
   * lists the errors; a combined file has the others, and `X-Skipped-Files` lists the positions of
   * those that failed; if all files fail, the response is the error of the first file. Send this
   * field before the files, so that it also applies to files that are rejected during the upload.
   * Default: `fail`.
   */
  readonly on_error?: 'fail' | 'skip' | undefined;
  /**
   * Whether the archive has a `manifest.json` with the name, size, SHA-256 and notes of each
   * result. Default: `false`.
   */
  readonly manifest?: boolean | undefined;
}

/** Options of `identify`. */
export interface IdentifyOptions extends ResultOptions {
  /**
   * An image that is put on each result, at most 10 MiB and 25 megapixels. It is sent in a form.
   */
  readonly watermark?: Blob | undefined;
  /** Name of options that the operator has defined. */
  readonly preset?: string | undefined;
  /**
   * Whether the description has the `explanation` of a conversion with the options of the request:
   * what it does and why, its commands, its key and the limits. Default: `false`.
   */
  readonly plan?: boolean | undefined;
  /**
   * Whether the description lists what the metadata gives away: place, time, camera and its serial
   * number, owner, software and comments, and the embedded thumbnail. Default: `false`.
   */
  readonly reveal?: boolean | undefined;
}

/** What an error response states. */
export interface ErrorDetails {
  /** The HTTP status. */
  readonly code: number;
  /** Describes the error and how to fix it. */
  readonly message: string;
  /** Names the error, for programs. The same in all versions. */
  readonly reason: Reason;
  /** Whether the same request can succeed later. */
  readonly retryable: boolean;
  /** The field or query parameter to change. */
  readonly field?: string | undefined;
  /** The limit, in the unit of the message. Times are in milliseconds. */
  readonly limit?: number | undefined;
  /** The amount that exceeds the limit. */
  readonly actual?: number | undefined;
  /** The setting of the service that changes the limit. */
  readonly setting?: string | undefined;
  /** The file of a batch that the error concerns. */
  readonly file?: {
    /** Position, from 0. */
    readonly index: number;
    /** Name in the request. Null if it has none. */
    readonly name: string | null;
  } | undefined;
}

/** What a conversion would do. */
export interface Explanation {
  /** Format of the image. */
  readonly type: InputFormat;
  /** Width of the stored pixels, if the header states it. An SVG can have fractions. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** The `X-Conversion-Key` of the result. */
  readonly key: string;
  /** A sentence for each stage that changes something, in order. */
  readonly sentences: readonly string[];
  /** Notes that are known before the pixels are decoded. */
  readonly notes: readonly Note[];
  /** The commands, without paths and threads. */
  readonly plan: {
    readonly [name: string]: unknown;
    readonly steps: readonly {
      readonly [name: string]: unknown;
      readonly tool: string;
      readonly args: readonly string[];
    }[];
    /** Versions of the tools. */
    readonly versions: Readonly<Record<string, string>>;
  };
  /** Limits of images and conversions, by setting. */
  readonly limits: Readonly<Record<string, number>>;
}

/** What the metadata of an image gives away. */
export interface Revealed {
  /** Values by kind, as the file states them. */
  readonly values: readonly ({
    /** Kind, as in `X-Removed-Metadata`. */
    readonly kind: RevealedKind;
    /** Standard of the field. `text`: a comment of the format itself. */
    readonly source: 'exif' | 'iptc' | 'xmp' | 'text';
    /** Name of the field, such as `GPSPosition` or `dc:creator`. */
    readonly name: string;
    /**
     * One line of at most 200 characters, without control characters. A position is in degrees.
     */
    readonly value: string;
  })[];
  /** The embedded thumbnail, at most 64 KiB. It can show what was cropped. */
  readonly thumbnail: {
    readonly media_type: string;
    readonly bytes: number;
    /** The file. */
    readonly base64: string;
  } | null;
  /**
   * Whether the server has read and listed all fields that it knows. False for a type whose
   * metadata it does not read: SVG, PDF, ICO, CUR, JPEG 2000 and PSD.
   */
  readonly complete: boolean;
}

/** What is known of an image without decoding its pixels. */
export interface ImageDescription {
  /** Name in the request. */
  readonly name: string | null;
  /** Detected format. */
  readonly type: InputFormat;
  readonly media_type: string;
  readonly bytes: number;
  /** Width in pixels after the orientation is applied. */
  readonly width: number | null;
  /** Height in pixels after the orientation is applied. */
  readonly height: number | null;
  /** Orientation of the stored pixels, as in EXIF. 1 is upright. */
  readonly orientation: number;
  /** Frames of an animation, otherwise 1. Null if only decoding shows their number. */
  readonly frames: number | null;
  /** Duration of an animation in milliseconds. */
  readonly duration_ms: number | null;
  /** Pages of a TIFF or a PDF, otherwise 1. */
  readonly pages: number;
  /** Whether the image can have transparent pixels. */
  readonly alpha: boolean | null;
  /** Bits per channel, or per index of a palette. */
  readonly bits: number | null;
  /** Model of the stored colours. */
  readonly colour_space: 'rgb' | 'grey' | 'cmyk' | 'lab' | null;
  /** Description of the embedded colour profile. */
  readonly profile: string | null;
  /** Transfer function of an image with a high dynamic range. */
  readonly hdr: 'pq' | 'hlg' | null;
  /** Kinds of metadata, never their values. */
  readonly metadata: readonly ('exif' | 'iptc' | 'xmp')[];
  readonly sha256: string;
  /** Whether this server can convert the image. */
  readonly convertible: boolean;
  /** Why the image cannot be converted. */
  readonly problem: ErrorDetails | null;
  /** The result that a conversion with these options would have. Only with options. */
  readonly conversion?: {
    readonly type: OutputFormat;
    /** Width in pixels. Null for a PDF, or if only decoding shows it, as with `trim`. */
    readonly width: number | null;
    readonly height: number | null;
    /** Quality. Null without loss, or if it depends on results, as with `max_bytes` or `auto`. */
    readonly quality: number | null;
    /** Notes that are known before the pixels are decoded. */
    readonly notes: readonly Note[];
  } | undefined;
  /** What that conversion would do, and why: the JSON of `imagemill explain`. Only with `plan`. */
  readonly explanation?: Explanation | undefined;
  /** What the metadata gives away. Only with `reveal`. */
  readonly revealed?: Revealed | undefined;
}

/** Formats that this machine can read and write, and its limits. */
export interface Formats {
  /** Names of formats that the service reads. */
  readonly input: readonly string[];
  readonly output: readonly OutputFormat[];
  /** Formats of which one file can have the results of several images, with `combine`. */
  readonly combine?: readonly ('webp' | 'gif' | 'pdf' | 'tiff')[] | undefined;
  /**
   * Who can reach this server, as its operator states: anyone, or only people who trust each other.
   */
  readonly access?: 'public' | 'private' | undefined;
  /** Limits of this server, which its operator sets. */
  readonly limits: {
    /** Maximum size of a file in bytes. */
    readonly max_file_bytes: number;
    /** Maximum width × height of an image, and of a result. */
    readonly max_pixels: number;
    /** Maximum number of pixels of all frames or pages of a file. */
    readonly max_total_pixels: number;
    /** Maximum number of frames or pages of a file. */
    readonly max_frames: number;
    /** Maximum width and height in pixels of an image, and of a result. */
    readonly max_dimension: number;
    /** Maximum number of files in a batch. */
    readonly max_batch_files: number;
  };
  /** Values of `preset`. Absent if there are none. */
  readonly presets?: readonly string[] | undefined;
}

/** Version and time of the service. */
export interface Health {
  readonly status: string;
  readonly version: string;
  /** Current time of the server, in UTC. */
  readonly timestamp: string;
}
