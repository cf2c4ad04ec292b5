import { z } from 'zod';
import { formFields } from '../../conversion/form-options.ts';
import { formatByteLimit } from '../../errors.ts';
import { INPUTS } from '../../formats.ts';
import type { ApiContext, Json } from './context.ts';

/** JSON Schemas of what is sent and answered. Forms are made from the checks that requests have to pass. */

const json = (schema: z.ZodType): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema);
  return rest;
};

/** @returns the components that operations refer to */
export function schemas(service: ApiContext): Record<string, Json> {
  const forms = formFields(service.outputs);
  const { MAX_BATCH_FILES, MAX_FILE_BYTES } = service.config;
  const labels = service.inputs.map((type) => INPUTS[type].label).join(', ');
  const type = 'Its type is told from its bytes; name and declared type do not matter.';
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
        `The images, at most ${MAX_BATCH_FILES}, each at most ${formatByteLimit(MAX_FILE_BYTES)}: ${labels}; or ZIP archives of images, ` +
        `whose files count like the others. ${type} The part may also be called \`files[]\`.`,
    }),
    Formats: json(
      z
        .object({
          input: z.array(z.enum(service.inputs.flatMap((input) => INPUTS[input].names))),
          output: z.array(z.enum(service.outputs)),
        })
        .describe('What this machine can read and write.'),
    ),
    Health: json(
      z.object({
        status: z.literal('ok'),
        version: z.string().regex(/^\d+\.\d+\.\d+/),
        timestamp: z.iso.datetime({ precision: 3 }).describe('The time of the server, in UTC.'),
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
            message: z.string().min(1).describe('What is wrong and what to do about it, in a sentence.'),
          }),
        })
        .describe('The one shape of every error.'),
    ),
  };
}

/** OpenAPI 3.1 says by the media type that a string is bytes; `format` is how 3.0 did, and what tools still look for. */
const binary = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' } as const;

function formSchema(fields: z.ZodObject, part: string, file: Json): Json {
  const options = Object.entries(fields.shape).map(([name, field]) => [name, json(field as z.ZodType)]);
  return { type: 'object', required: [part], properties: { [part]: file, ...Object.fromEntries(options) } };
}
