/** @module JSON Schemas of requests and responses. The schemas of forms come from the checks of their fields. */
import { z } from 'zod';
import { formFields } from '../../conversion/options.ts';
import { formatByteLimit } from '../../errors.ts';
import { INPUTS } from '../../formats.ts';
import type { ApiContext, Json } from './context.ts';

const json = (schema: z.ZodType): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema);
  return rest;
};

/** Returns the schemas that operations refer to. */
export function schemas(service: ApiContext): Record<string, Json> {
  const forms = formFields(service.outputs);
  const { MAX_BATCH_FILES, MAX_FILE_BYTES } = service.config;
  const labels = service.inputs.map((type) => INPUTS[type].label).join(', ');
  const type = 'The server detects the type from the content. File name and declared type are ignored.';
  return {
    ConvertForm: formSchema(forms.convert, 'file', {
      ...binary,
      description: `The image, at most ${formatByteLimit(MAX_FILE_BYTES)}: ${labels}. ${type}`,
    }),
    BatchForm: formSchema(forms.batch, 'files', {
      type: 'array',
      minItems: 1,
      maxItems: MAX_BATCH_FILES,
      items: binary,
      description:
        `The images, at most ${MAX_BATCH_FILES}, each at most ${formatByteLimit(MAX_FILE_BYTES)}: ${labels}; or ZIP archives of images. ` +
        `Files in an archive count like other files. ${type} The field can also be named \`files[]\`.`,
    }),
    Formats: json(
      z
        .object({
          input: z.array(z.enum(service.inputs.flatMap((input) => INPUTS[input].names))),
          output: z.array(z.enum(service.outputs)),
        })
        .describe('Formats that this machine can read and write.'),
    ),
    Health: json(
      z.object({
        status: z.literal('ok'),
        version: z.string().regex(/^\d+\.\d+\.\d+/),
        timestamp: z.iso.datetime({ precision: 3 }).describe('Current time of the server, in UTC.'),
      }),
    ),
    Reference: json(
      z
        .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
        .describe('An [OpenAPI](https://spec.openapis.org/oas/v3.1.1.html) document.'),
    ),
    Error: json(
      z
        .object({
          error: z.strictObject({
            code: z.int().min(400).max(599).describe('The HTTP status.'),
            message: z.string().min(1).describe('Describes the error and how to fix it.'),
          }),
        })
        .describe('Body of every error response.'),
    ),
  };
}

/** OpenAPI 3.1 marks binary data by its media type, OpenAPI 3.0 by `format`, which many tools still require. */
const binary = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' } as const;

function formSchema(fields: z.ZodObject, part: string, file: Json): Json {
  const options = Object.entries(fields.shape).map(([name, field]) => [name, json(field as z.ZodType)]);
  return { type: 'object', required: [part], properties: { [part]: file, ...Object.fromEntries(options) } };
}
