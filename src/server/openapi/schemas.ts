/** @module JSON Schemas of requests and responses, which zod makes. The schemas of forms come from the checks of their fields. */
import { z } from 'zod';
import type { Config } from '../../config.ts';
import { formFields, type Presets } from '../../conversion/forms.ts';
import { INPUTS, type InputType, MAX_DIMENSION, type OutputType } from '../../formats.ts';
import { formatByteLimit } from '../../text.ts';
import { ERROR, HEALTH, imageDescription, REFERENCE } from './json-bodies.ts';

/** The service that the reference describes. */
export interface ApiContext {
  readonly version: string;
  /** Formats that this machine can read. */
  readonly inputs: readonly InputType[];
  /** Formats that this machine can write. */
  readonly outputs: readonly OutputType[];
  /** Named options of the operator. */
  readonly presets: Presets;
  readonly config: Config;
}

/** A part of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns the schemas that operations refer to. */
export function schemas({ inputs, outputs, presets, config }: ApiContext): Record<string, Json> {
  const forms = formFields(outputs, presets);
  const limit = formatByteLimit(config.MAX_FILE_BYTES);
  const labels = inputs.map((type) => INPUTS[type].label).join(', ');
  const detected = 'The server detects the type from the content. File name and declared type are ignored.';
  const formats = z.object({
    input: z.array(z.enum(inputs.flatMap((type) => INPUTS[type].names))),
    output: z.array(z.enum(outputs)),
    limits: LIMITS,
    ...(presets.size > 0 && {
      presets: z.array(z.enum([...presets.keys()])).describe('Values of the field `preset`.'),
    }),
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
    IdentifyForm: {
      type: 'object',
      properties: {
        file: {
          ...BINARY,
          description: `A single image, at most ${limit}, of any format that the server knows.`,
        },
        files: {
          ...{ type: 'array', minItems: 1, maxItems: config.MAX_BATCH_FILES, items: BINARY },
          description: 'Images or ZIP archives, as in `/batch`. The response is a list.',
        },
        ...fieldSchemas(forms.identify),
      },
    },
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
export function formatsBody({ inputs, outputs, presets, config }: Omit<ApiContext, 'version'>): Json {
  const limits: z.output<typeof LIMITS> = {
    max_file_bytes: config.MAX_FILE_BYTES,
    max_pixels: config.MAX_PIXELS,
    max_total_pixels: config.MAX_TOTAL_PIXELS,
    max_frames: config.MAX_FRAMES,
    max_dimension: MAX_DIMENSION,
    max_batch_files: config.MAX_BATCH_FILES,
  };
  return {
    input: inputs.flatMap((type) => INPUTS[type].names),
    output: outputs,
    limits,
    ...(presets.size > 0 && { presets: [...presets.keys()] }),
  };
}

/** OpenAPI 3.1 marks binary data by its media type, OpenAPI 3.0 by `format`, which many tools still require. */
export const BINARY = {
  type: 'string',
  format: 'binary',
  contentMediaType: 'application/octet-stream',
} as const;

function toSchema(check: z.ZodType): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(check);
  return schema;
}

/** Unlike the schema of an object, that of a form allows unknown fields. */
function formSchema(fields: z.ZodObject, part: string, file: Json): Json {
  return { type: 'object', required: [part], properties: { [part]: file, ...fieldSchemas(fields) } };
}

/** Returns the schemas of fields, with defaults in prose: generators make a field with a default required. */
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

/** Returns the fields of a form as query parameters, which belong to a body that is an image. */
export function queryParameters(
  { outputs, presets }: ApiContext,
  form: 'convert' | 'identify',
): readonly Json[] {
  const fields = fieldSchemas(formFields(outputs, presets)[form]);
  // Without examples: Swagger UI would send the first one.
  return Object.entries(fields).map(([name, { description: _, examples: __, ...schema }]) => ({
    ...{ name, in: 'query', schema },
    description: 'As the field of the form. Only if the body is an image.',
  }));
}
