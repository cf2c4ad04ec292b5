/** @module Schemas of the JSON bodies of responses. */
import { z } from 'zod';
import { ERROR_CODES } from '../../error-table.ts';
import { reasonOf } from '../../errors.ts';
import { ALL_INPUT_TYPES, type OutputType } from '../../formats.ts';
import { NOTES, type Note } from '../../notes.ts';

export const HEALTH = z.object({
  status: z.literal('ok'),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  timestamp: z.iso.datetime({ precision: 3 }).describe('Current time of the server, in UTC.'),
});

export const REFERENCE = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
  .describe('An [OpenAPI](https://spec.openapis.org/oas/v3.1.1.html) document.');

/** What an error states. */
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

export const ERROR = z.object({ error: ERROR_MEMBERS }).describe('Body of every error response.');

const notes = z
  .array(z.enum(Object.keys(NOTES) as Note[]))
  .describe('Notes that are known before the pixels are decoded.');

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
export const imageDescription = (outputs: readonly OutputType[]) =>
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
      bits: z.int().nullable().describe('Bits per channel.'),
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
            .describe('Width in pixels. Null for a PDF, or if only decoding shows it.'),
          height: z.int().nullable(),
          notes,
        })
        .optional()
        .describe('The result that a conversion with these options would have. Only with options.'),
      explanation: EXPLANATION.optional().describe(
        'What that conversion would do, and why: the JSON of `imagemill explain`. Only with `plan`.',
      ),
    })
    .describe('What is known of an image without decoding its pixels.');
