/** @module Types of the API, for applications. test/client/types.test.ts compares them with those of the service. */

/** Name of an output format. The service must have it enabled. */
// biome-ignore format: a list
export type OutputFormat = 'webp' | 'png' | 'jpg' | 'gif' | 'bmp' | 'pdf' | 'avif' | 'jxl' | 'tiff' | 'ico';

/** Name of an input format. */
// biome-ignore format: a list
export type InputFormat =
  | 'png' | 'jpg' | 'gif' | 'bmp' | 'tiff' | 'svg' | 'avif' | 'ico' | 'webp' | 'heic' | 'jxl' | 'jp2' | 'psd' | 'cur'
  | 'pdf';

/** Difference between an image and its result, or damage of the image. */
// biome-ignore format: a list
export type Note =
  | 'first-frame-only' | 'first-page-only' | 'alpha-flattened' | 'colour-converted-to-srgb' | 'truncated-input'
  | 'quality-lowered' | 'partial-alpha-lost' | 'svg-features-ignored' | 'metadata-partly-kept';

/** Names of errors, the same in all versions. */
// biome-ignore format: a list
export type Reason =
  | 'malformed_request' | 'host_invalid' | 'incomplete_body' | 'chunks_too_small' | 'not_multipart' | 'malformed_multipart'
  | 'no_file' | 'file_sent_as_text' | 'empty_file' | 'unexpected_file_field' | 'too_many_files' | 'too_many_fields'
  | 'field_in_query' | 'unknown_parameter' | 'field_repeated' | 'field_invalid' | 'conflicting_formats' | 'too_many_variants'
  | 'variant_invalid' | 'bad_archive' | 'corrupt_image' | 'unsupported_encoding' | 'output_dimension_too_large'
  | 'file_encrypted' | 'pdf_to_pdf'
  | 'crop_outside' | 'bytes_unreachable' | 'client_id_invalid' | 'api_key_missing' | 'api_key_invalid' | 'not_found'
  | 'method_not_allowed' | 'not_acceptable' | 'request_timeout' | 'upload_timeout' | 'upload_too_slow'
  | 'precondition_failed' | 'file_too_large' | 'too_many_pixels' | 'input_dimension_too_large' | 'drawing_too_large'
  | 'result_too_large' | 'result_too_large_in_total' | 'variants_too_large_in_total' | 'too_many_frames'
  | 'too_many_total_pixels' | 'resource_limit_exceeded' | 'conversion_timeout' | 'unsupported_type' | 'conversion_unsupported'
  | 'unsupported_content_encoding' | 'range_not_satisfiable' | 'rate_limited' | 'headers_too_large' | 'internal'
  | 'method_unknown' | 'transfer_coding' | 'queue_full' | 'overloaded' | 'disk_full' | 'temp_dir_unwritable' | 'shutting_down'
  | 'too_many_connections' | 'converter_unavailable';

/** Part of an image that `cover` keeps, and place of an image that `contain` puts into its box. */
// biome-ignore format: a list
export type Position =
  | 'center' | 'top' | 'right top' | 'right' | 'right bottom' | 'bottom' | 'left bottom' | 'left' | 'left top'
  | 'attention';

/** Options of one result. `/docs` of the service describes them. */
export interface ResultOptions {
  /** `auto` chooses the best format that the header `Accept` permits. Default: webp. */
  readonly output_format?: OutputFormat | 'auto' | undefined;
  /** 1 to 100. Default: 80. */
  readonly quality?: number | undefined;
  /** `left,top,width,height` in pixels of the upright image, or with a `%` in percent. */
  readonly crop?: string | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly fit?: 'inside' | 'cover' | 'contain' | 'fill' | undefined;
  readonly position?: Position | undefined;
  readonly enlarge?: boolean | undefined;
  readonly lossless?: boolean | undefined;
  readonly max_bytes?: number | undefined;
  /** Default: true. */
  readonly strip_metadata?: boolean | undefined;
  readonly frames?: 'all' | 'first' | undefined;
  readonly pages?: 'all' | 'first' | undefined;
  /** Pixels per inch of a page of a PDF, 36 to 600. Default: 144. */
  readonly dpi?: number | undefined;
  /** `#rgb`, `#rrggbb` or a colour name of CSS. */
  readonly background?: string | undefined;
}

/** Options of `convert`. */
export interface ConvertOptions extends ResultOptions {
  /** Name of options that the operator of the service has defined. */
  readonly preset?: string | undefined;
  /** Several results, instead of one. The response is a ZIP archive. */
  readonly variants?: readonly (ResultOptions & { readonly name: string })[] | undefined;
  /** What to do if a variant, or a file of a batch, fails. Default: fail. */
  readonly on_error?: 'fail' | 'skip' | undefined;
}

/** Options of `batch`. */
export interface BatchOptions extends ConvertOptions {
  /** Whether the archive has a `manifest.json`. */
  readonly manifest?: boolean | undefined;
}

/** What an error response states. */
export interface ErrorDetails {
  /** The HTTP status. */
  readonly code: number;
  readonly message: string;
  readonly reason: Reason;
  readonly retryable: boolean;
  /** The option to change. */
  readonly field?: string | undefined;
  /** The limit and the amount that exceeds it, in the unit of the message. */
  readonly limit?: number | undefined;
  readonly actual?: number | undefined;
  /** The setting of the service that changes the limit. */
  readonly setting?: string | undefined;
  /** The file of a batch that the error concerns: its position, from 0, and its name. */
  readonly file?: { readonly index: number; readonly name: string | null } | undefined;
}

/** What is known of an image without decoding its pixels. A value that the file does not state is null. */
export interface ImageDescription {
  readonly name: string | null;
  readonly type: InputFormat;
  readonly media_type: string;
  readonly bytes: number;
  /** Size in pixels after the orientation is applied. */
  readonly width: number | null;
  readonly height: number | null;
  /** Orientation of the stored pixels, 1 to 8 as in EXIF. */
  readonly orientation: number;
  readonly frames: number | null;
  readonly duration_ms: number | null;
  readonly pages: number;
  readonly alpha: boolean | null;
  /** Bits per channel. */
  readonly bits: number | null;
  readonly colour_space: 'rgb' | 'grey' | 'cmyk' | 'lab' | null;
  /** Description of the embedded colour profile. */
  readonly profile: string | null;
  readonly hdr: 'pq' | 'hlg' | null;
  readonly metadata: readonly ('exif' | 'iptc' | 'xmp')[];
  readonly sha256: string;
  readonly convertible: boolean;
  /** Why this service cannot convert the image. */
  readonly problem: ErrorDetails | null;
  /** What a conversion with the options would result in. Only with options. */
  readonly conversion?:
    | {
        readonly type: OutputFormat;
        readonly width: number | null;
        readonly height: number | null;
        readonly notes: readonly Note[];
      }
    | undefined;
  /** What that conversion would do, and why. Only with `plan`. */
  readonly explanation?: Explanation | undefined;
}

/** What a conversion would do. */
export interface Explanation {
  readonly type: InputFormat;
  /** Size of the stored pixels, if the file states it. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** `X-Conversion-Key` of the result. */
  readonly key: string;
  readonly sentences: readonly string[];
  readonly notes: readonly Note[];
  /** The commands, without paths and threads, and the versions of their tools. */
  readonly plan: {
    readonly [name: string]: unknown;
    readonly steps: readonly {
      readonly [name: string]: unknown;
      readonly tool: string;
      readonly args: readonly string[];
    }[];
    readonly versions: Readonly<Record<string, string>>;
  };
  /** Limits of images and conversions, by setting. */
  readonly limits: Readonly<Record<string, number>>;
}

/** Options of `identify`. */
export interface IdentifyOptions extends ResultOptions {
  /** Whether to explain the conversion. Default: false. */
  readonly plan?: boolean | undefined;
}

export interface Formats {
  readonly input: readonly string[];
  readonly output: readonly OutputFormat[];
  readonly limits: Readonly<Record<string, number>>;
  readonly presets?: readonly string[] | undefined;
}

export interface Health {
  readonly status: 'ok';
  readonly version: string;
  readonly timestamp: string;
}
