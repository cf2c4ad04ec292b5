/** @module JSON Schemas of requests and responses, which zod makes. Those of forms come from the checks of their fields. */
import { z } from 'zod';
import type { Config } from '../../config.ts';
import { formFields } from '../../conversion/options.ts';
import { ERROR_CODES } from '../../error-table.ts';
import { reasonOf } from '../../errors.ts';
import { INPUTS, type InputType, MAX_DIMENSION, type OutputType } from '../../formats.ts';
import { formatByteLimit } from '../../text.ts';

/** The service that the reference describes. */
export interface ApiContext {
  readonly version: string;
  /** Formats that this machine can read. */
  readonly inputs: readonly InputType[];
  /** Formats that this machine can write. */
  readonly outputs: readonly OutputType[];
  readonly config: Config;
}

/** A part of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns the schemas that operations refer to. */
export function schemas({ inputs, outputs, config }: ApiContext): Record<string, Json> {
  const forms = formFields(outputs);
  const limit = formatByteLimit(config.MAX_FILE_BYTES);
  const labels = inputs.map((type) => INPUTS[type].label).join(', ');
  const detected = 'The server detects the type from the content. File name and declared type are ignored.';
  const formats = z.object({
    input: z.array(z.enum(inputs.flatMap((type) => INPUTS[type].names))),
    output: z.array(z.enum(outputs)),
    limits: LIMITS,
  });
  return {
    ConvertForm: formSchema(forms.convert, 'file', {
      ...BINARY,
      description: `The image, at most ${limit}: ${labels}. ${detected}`,
    }),
    BatchForm: formSchema(forms.batch, 'files', {
      type: 'array',
      minItems: 1,
      maxItems: config.MAX_BATCH_FILES,
      items: BINARY,
      description:
        `The images, at most ${config.MAX_BATCH_FILES}, each at most ${limit}: ${labels}; or ZIP archives of images. ` +
        `Files in an archive count like other files. ${detected} The field can also be named \`files[]\`, or \`files[0]\`, \`files[1]\` and so on.`,
    }),
    Formats: toSchema(formats.describe('Formats that this machine can read and write, and its limits.')),
    Health: toSchema(HEALTH),
    Reference: toSchema(REFERENCE),
    Error: toSchema(ERROR),
  };
}

const limit = (description: string) => z.int().positive().describe(description);

const LIMITS = z
  .object({
    max_file_bytes: limit('Maximum size of a file in bytes.'),
    max_pixels: limit('Maximum width × height of an image, and of a result.'),
    max_total_pixels: limit('Maximum number of pixels of all frames or pages of a file.'),
    max_frames: limit('Maximum number of frames or pages of a file.'),
    max_dimension: limit('Maximum width and height in pixels of an image, and of a result.'),
    max_batch_files: limit('Maximum number of files in a batch.'),
  })
  .describe('Limits of this server, which its operator sets.');

/** Returns the body of `GET /formats`. */
export function formatsBody({ inputs, outputs, config }: Omit<ApiContext, 'version'>): Json {
  const limits: z.output<typeof LIMITS> = {
    max_file_bytes: config.MAX_FILE_BYTES,
    max_pixels: config.MAX_PIXELS,
    max_total_pixels: config.MAX_TOTAL_PIXELS,
    max_frames: config.MAX_FRAMES,
    max_dimension: MAX_DIMENSION,
    max_batch_files: config.MAX_BATCH_FILES,
  };
  return { input: inputs.flatMap((type) => INPUTS[type].names), output: outputs, limits };
}

const HEALTH = z.object({
  status: z.literal('ok'),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  timestamp: z.iso.datetime({ precision: 3 }).describe('Current time of the server, in UTC.'),
});

const REFERENCE = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
  .describe('An [OpenAPI](https://spec.openapis.org/oas/v3.1.1.html) document.');

const ERROR = z
  .object({
    error: z.strictObject({
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
    }),
  })
  .describe('Body of every error response.');

/** OpenAPI 3.1 marks binary data by its media type, OpenAPI 3.0 by `format`, which many tools still require. */
const BINARY = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' } as const;

function toSchema(check: z.ZodType): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(check);
  return schema;
}

/** Unlike the schema of an object, that of a form allows unknown fields, and requires no field that has a default. */
function formSchema(fields: z.ZodObject, part: string, file: Json): Json {
  const { properties } = z.toJSONSchema(fields);
  return { type: 'object', required: [part], properties: { [part]: file, ...properties } };
}
