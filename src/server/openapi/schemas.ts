/** @module JSON Schemas of requests and responses. Those of forms come from their field checks. */
import { z } from 'zod';
import { formatByteLimit } from '../../base/text.ts';
import type { FormSchemas, Presets } from '../../conversion/request/forms.ts';
import { REVEALED_KINDS } from '../../images/revealed/fields-table.ts';
import type { Config } from '../../tables/config.ts';
import { ERROR_CODES } from '../../tables/error-table.ts';
import { reasonOf } from '../../tables/errors.ts';
import {
  ALL_INPUT_TYPES,
  INPUTS,
  type InputType,
  listLabels,
  MAX_WATERMARK,
  type OutputType,
} from '../../tables/formats.ts';
import { NOTES, type Note } from '../../tables/notes.ts';
import { WATERMARK_FIELD } from '../receive/file-collector.ts';

/** The service that the reference describes. */
export interface ApiContext {
  readonly version: string;
  /** Formats that this machine can read. */
  readonly inputs: readonly InputType[];
  /** Formats that this machine can write. */
  readonly outputs: readonly OutputType[];
  /** Formats of which one file can have the results of several images. */
  readonly combined: readonly OutputType[];
  /** Named options of the operator. */
  readonly presets: Presets;
  /** The checks of the text fields. */
  readonly forms: FormSchemas;
  readonly config: Config;
}

export type Json = Readonly<Record<string, unknown>>;

/** Returns the schemas that operations refer to. */
export function schemas({ inputs, outputs, combined, presets, forms, config }: ApiContext): Json {
  const limit = formatByteLimit(config.MAX_FILE_BYTES);
  const labels = listLabels(inputs);
  const detected = 'The server detects the type from the content. File name and declared type are ignored.';
  const file = (description: string): Json => ({ ...BINARY, description });
  const list = { type: 'array', minItems: 1, maxItems: config.MAX_BATCH_FILES, items: BINARY };
  const files = (description: string): Json => ({ ...list, description });
  const formats = z.object({
    input: z.array(z.enum(inputs.flatMap((type) => INPUTS[type].names))),
    output: z.array(z.enum(outputs)),
    combine: z
      .array(z.enum(combined))
      .describe('Formats of which one file can have the results of several images, with `combine`.'),
    access: z
      .enum(['public', 'private'])
      .describe(
        'Who can reach this server, as its operator states: anyone, or only people who trust each other.',
      ),
    limits,
    ...(presets.size > 0 && {
      presets: z.array(z.enum([...presets.keys()])).describe('Values of the field `preset`.'),
    }),
  });
  return {
    ConvertForm: formSchema(forms.convert, ['file'], {
      file: file(`The image, at most ${limit}: ${labels}. ${detected}`),
    }),
    BatchForm: formSchema(forms.batch, ['files'], {
      files: files(
        `The images, at most ${config.MAX_BATCH_FILES}, each at most ${limit}: ${labels}; or ZIP archives of images. ` +
          `Files in an archive count like other files. ${detected} The field can also be named \`files[]\`, or \`files[0]\`, \`files[1]\` and so on.`,
      ),
    }),
    IdentifyForm: formSchema(forms.identify, undefined, {
      file: file(`A single image, at most ${limit}, of any format that the server knows.`),
      files: files('Images or ZIP archives, as in `/batch`. The response is a list.'),
    }),
    ImageDescription: toSchema(imageDescription(outputs)),
    Identified: {
      anyOf: [
        { $ref: '#/components/schemas/ImageDescription' },
        {
          type: 'object',
          required: ['images'],
          properties: { images: { type: 'array', items: { $ref: '#/components/schemas/ImageDescription' } } },
        },
      ],
    },
    Formats: toSchema(formats.describe('Formats that this machine can read and write, and its limits.')),
    Health: toSchema(HEALTH),
    Reference: toSchema(REFERENCE),
    Error: toSchema(ERROR),
  };
}

/** Limits of the server: the setting of each, and its description. */
const LIMITS = Object.entries({
  max_file_bytes: ['MAX_FILE_BYTES', 'Maximum size of a file in bytes.'],
  max_pixels: ['MAX_PIXELS', 'Maximum width × height of an image, and of a result.'],
  max_total_pixels: ['MAX_TOTAL_PIXELS', 'Maximum number of pixels of all frames or pages of a file.'],
  max_frames: ['MAX_FRAMES', 'Maximum number of frames or pages of a file.'],
  max_dimension: ['maxSide', 'Maximum width and height in pixels of an image, and of a result.'],
  max_batch_files: ['MAX_BATCH_FILES', 'Maximum number of files in a batch.'],
} as const);

const limits = z
  .object(Object.fromEntries(LIMITS.map(([name, [, text]]) => [name, z.int().positive().describe(text)])))
  .describe('Limits of this server, which its operator sets.');

/** Returns the body of `GET /formats`. */
export function formatsBody({ inputs, outputs, combined, presets, config }: ApiContext): Json {
  return {
    input: inputs.flatMap((type) => INPUTS[type].names),
    output: outputs,
    combine: combined,
    access: config.ACCESS,
    limits: Object.fromEntries(LIMITS.map(([name, [setting]]) => [name, config[setting]])),
    presets: presets.size > 0 ? [...presets.keys()] : undefined,
  };
}

/** OpenAPI 3.1 marks binary data by its media type, 3.0 by `format`, which many tools need. */
export const BINARY = {
  type: 'string',
  format: 'binary',
  contentMediaType: 'application/octet-stream',
} as const;

/** The file part of a watermark. */
const WATERMARK = {
  ...BINARY,
  description: `An image that is put on each result, of any format of \`file\`, at most ${formatByteLimit(MAX_WATERMARK.bytes)} and ${MAX_WATERMARK.pixels / 1_000_000} megapixels. An SVG is drawn at its final size, and of an animation, the first frame is used. Applies after \`greyscale\`, before the borders of \`contain\`. The colours of the result are sRGB.`,
};

function toSchema(check: z.ZodType): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(check);
  return schema;
}

/** Returns the schema of a form with these files. Unlike an object's, it allows unknown fields. */
function formSchema(fields: z.ZodObject, required: readonly string[] | undefined, parts: Json): Json {
  const properties = { ...parts, [WATERMARK_FIELD]: WATERMARK, ...fieldSchemas(fields) };
  return { type: 'object', required, properties };
}

/** Returns the schemas of fields, with defaults in prose: generators would require the field. */
function fieldSchemas(fields: z.ZodObject): Readonly<Record<string, Json>> {
  const { properties = {} } = z.toJSONSchema(fields);
  return Object.fromEntries(
    Object.entries(properties as Readonly<Record<string, Json>>).map(
      ([name, { default: value, ...schema }]) => [
        name,
        value === undefined
          ? schema
          : { ...schema, description: `${schema.description} Default: \`${value}\`.` },
      ],
    ),
  );
}

/** Returns the fields of a form as query parameters, for a body that is an image. */
export function queryParameters({ forms }: ApiContext, form: 'convert' | 'identify'): readonly Json[] {
  const fields = fieldSchemas(forms[form]);
  // Without examples: Swagger UI would send the first one.
  return Object.entries(fields).map(([name, { description, examples: _, ...schema }]) => ({
    name,
    in: 'query',
    schema,
    description,
  }));
}

const HEALTH = z.object({
  status: z.literal('ok'),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  timestamp: z.iso.datetime({ precision: 3 }).describe('Current time of the server, in UTC.'),
});

const REFERENCE = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
  .describe('An [OpenAPI](https://spec.openapis.org/oas/v3.1.1.html) document.');

const ERROR_MEMBERS = z.strictObject({
  code: z.int().min(400).max(599).describe('The HTTP status.'),
  message: z.string().min(1).describe('Describes the error and how to fix it.'),
  reason: z
    .enum(ERROR_CODES.map(reasonOf))
    .describe('Names the error, for programs. The same in all versions.'),
  retryable: z.boolean().describe('Whether the same request can succeed later.'),
  field: z.string().optional().describe('The field or query parameter to change.'),
  limit: z.int().optional().describe('The limit, in the unit of the message. Times are in milliseconds.'),
  actual: z.int().optional().describe('The amount that exceeds the limit.'),
  setting: z.string().optional().describe('The setting of the service that changes the limit.'),
  file: z
    .strictObject({
      index: z.int().min(0).describe('Position, from 0.'),
      name: z.string().nullable().describe('Name in the request. Null if it has none.'),
    })
    .optional()
    .describe('The file of a batch that the error concerns.'),
});

const ERROR = z.object({ error: ERROR_MEMBERS }).describe('Body of every error response.');

const notes = z
  .array(z.enum(Object.keys(NOTES) as Note[]))
  .describe('Notes that are known before the pixels are decoded.');

const REVEALED = z.strictObject({
  values: z
    .array(
      z.strictObject({
        kind: z.enum(REVEALED_KINDS).describe('Kind, as in `X-Removed-Metadata`.'),
        source: z
          .enum(['exif', 'iptc', 'xmp', 'text'])
          .describe('Standard of the field. `text`: a comment of the format itself.'),
        name: z.string().describe('Name of the field, such as `GPSPosition` or `dc:creator`.'),
        value: z
          .string()
          .describe(
            'One line of at most 200 characters, without control characters. A position is in degrees.',
          ),
      }),
    )
    .max(100)
    .describe('Values by kind, as the file states them.'),
  thumbnail: z
    .strictObject({
      media_type: z.literal('image/jpeg'),
      bytes: z.int().min(1),
      base64: z.string().describe('The file.'),
    })
    .nullable()
    .describe('The embedded thumbnail, at most 64 KiB. It can show what was cropped.'),
  complete: z
    .boolean()
    .describe(
      'Whether the server has read and listed all fields that it knows. False for a type whose metadata it does not read: SVG, PDF, ICO, CUR, JPEG 2000 and PSD.',
    ),
});

const EXPLANATION = z.strictObject({
  type: z.enum(ALL_INPUT_TYPES).describe('Format of the image.'),
  width: z
    .number()
    .optional()
    .describe('Width of the stored pixels, if the header states it. An SVG can have fractions.'),
  height: z.number().optional(),
  key: z
    .string()
    .regex(/^[\da-f]{64}$/)
    .describe('The `X-Conversion-Key` of the result.'),
  sentences: z.array(z.string()).describe('A sentence for each stage that changes something, in order.'),
  notes,
  plan: z
    .looseObject({
      steps: z.array(z.looseObject({ tool: z.string(), args: z.array(z.string()) })),
      versions: z.record(z.string(), z.string()).describe('Versions of the tools.'),
    })
    .describe('The commands, without paths and threads.'),
  limits: z.record(z.string(), z.int()).describe('Limits of images and conversions, by setting.'),
});

/** What the header of an image states. Null means that it does not. */
const imageDescription = (outputs: readonly OutputType[]) =>
  z
    .strictObject({
      name: z.string().nullable().describe('Name in the request.'),
      type: z.enum(ALL_INPUT_TYPES).describe('Detected format.'),
      media_type: z.string(),
      bytes: z.int().min(1),
      width: z.int().nullable().describe('Width in pixels after the orientation is applied.'),
      height: z.int().nullable().describe('Height in pixels after the orientation is applied.'),
      orientation: z
        .int()
        .min(1)
        .max(8)
        .describe('Orientation of the stored pixels, as in EXIF. 1 is upright.'),
      frames: z
        .int()
        .nullable()
        .describe('Frames of an animation, otherwise 1. Null if only decoding shows their number.'),
      duration_ms: z.int().nullable().describe('Duration of an animation in milliseconds.'),
      pages: z.int().min(1).describe('Pages of a TIFF or a PDF, otherwise 1.'),
      alpha: z.boolean().nullable().describe('Whether the image can have transparent pixels.'),
      bits: z.int().nullable().describe('Bits per channel, or per index of a palette.'),
      colour_space: z
        .enum(['rgb', 'grey', 'cmyk', 'lab'])
        .nullable()
        .describe('Model of the stored colours.'),
      profile: z.string().nullable().describe('Description of the embedded colour profile.'),
      hdr: z
        .enum(['pq', 'hlg'])
        .nullable()
        .describe('Transfer function of an image with a high dynamic range.'),
      metadata: z.array(z.enum(['exif', 'iptc', 'xmp'])).describe('Kinds of metadata, never their values.'),
      sha256: z.string().regex(/^[\da-f]{64}$/),
      convertible: z.boolean().describe('Whether this server can convert the image.'),
      problem: ERROR_MEMBERS.nullable().describe('Why the image cannot be converted.'),
      conversion: z
        .strictObject({
          type: z.enum(outputs),
          width: z
            .int()
            .nullable()
            .describe('Width in pixels. Null for a PDF, or if only decoding shows it, as with `trim`.'),
          height: z.int().nullable(),
          quality: z
            .int()
            .min(1)
            .max(100)
            .nullable()
            .describe(
              'Quality. Null without loss, or if it depends on results, as with `max_bytes` or `auto`.',
            ),
          notes,
        })
        .optional()
        .describe('The result that a conversion with these options would have. Only with options.'),
      explanation: EXPLANATION.optional().describe(
        'What that conversion would do, and why: the JSON of `imagemill explain`. Only with `plan`.',
      ),
      revealed: REVEALED.optional().describe('What the metadata gives away. Only with `reveal`.'),
    })
    .describe('What is known of an image without decoding its pixels.');
