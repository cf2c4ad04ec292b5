import { INPUTS, type InputType, OUTPUTS } from '../../formats.ts';
import type { Method } from '../endpoint.ts';
import type { ApiContext, Json } from './context.ts';
import type { HeaderName } from './headers.ts';

/** The endpoints: what each is for, what it takes, and what it answers when all goes well. The app serves these. */

export type OperationId = 'convert' | 'convertBatch' | 'listFormats' | 'getHealth' | 'getReference';

export interface Operation {
  readonly method: Method;
  readonly path: string;
  readonly operationId: OperationId;
  readonly tag: 'Converting' | 'About the service';
  readonly summary: string;
  readonly description: string;
  /** Which form it takes, if one. */
  readonly form?: 'convert' | 'batch';
  readonly success: {
    readonly description: string;
    readonly headers: readonly HeaderName[];
    readonly content: (service: ApiContext) => Json;
  };
}

export const OPERATIONS: readonly Operation[] = [
  {
    method: 'POST',
    path: '/convert',
    operationId: 'convert',
    tag: 'Converting',
    summary: 'Convert one image',
    description:
      'Fields may come in any order; empty ones count as absent, unknown ones are passed over, and one that is given ' +
      'twice is refused. The orientation of the camera is applied, and colours become sRGB before the profile goes.',
    form: 'convert',
    success: {
      description: 'The converted file.',
      headers: ['ContentLength', 'FileName', 'NotStored', 'ServerTiming', 'Notes', 'Quality'],
      // A body of bytes has no schema in OpenAPI 3.1: its media type says it all.
      content: ({ outputs }) => Object.fromEntries(outputs.map((output) => [OUTPUTS[output].mediaType, {}])),
    },
  },
  {
    method: 'POST',
    path: '/batch',
    operationId: 'convertBatch',
    tag: 'Converting',
    summary: 'Convert many images',
    description:
      'All get the same options. The archive has the results in the order the files were sent, each under the name of ' +
      'its file without folders and with the new extension; a second one of the same name gets ` (2)`. What was skipped ' +
      'is listed in its `errors.json`, by place (from 0) and name. Of a ZIP that is sent, folders and what ' +
      'systems add (`__MACOSX`, `.DS_Store`, `._*`, `Thumbs.db`, `desktop.ini`) are passed over; one that is encrypted or ' +
      'damaged, has links, other archives, names of more than 1 KiB or paths that lead out of it is refused.',
    form: 'batch',
    success: {
      description:
        'A ZIP archive of the converted files, which can be read from front to back as it arrives.',
      headers: ['ContentLength', 'ArchiveName', 'NotStored', 'ServerTiming', 'NotesOfMany', 'QualityOfMany'],
      content: () => ({ 'application/zip': {} }),
    },
  },
  {
    method: 'GET',
    path: '/formats',
    operationId: 'listFormats',
    tag: 'About the service',
    summary: 'What can be converted to what',
    description: 'What works on this machine, with the tools that were found at the start.',
    success: {
      description: 'The formats that can be read and written.',
      headers: ['ContentLength'],
      content: ({ inputs, outputs }) =>
        answer('Formats', {
          input: inputs.flatMap((type: InputType) => INPUTS[type].names),
          output: outputs,
        }),
    },
  },
  {
    method: 'GET',
    path: '/health',
    operationId: 'getHealth',
    tag: 'About the service',
    summary: 'Whether it is there',
    description: 'That the service answers, which version it is, and what time it has.',
    success: {
      description: 'It is there.',
      headers: ['ContentLength', 'NotStored'],
      content: ({ version }) =>
        answer('Health', { status: 'ok', version, timestamp: '2026-11-21T01:46:55.265Z' }),
    },
  },
  {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getReference',
    tag: 'About the service',
    summary: 'This reference',
    description: 'The API as an OpenAPI 3.1 document, made for this machine and its settings.',
    success: {
      description: 'The document.',
      headers: ['ContentLength', 'AskedFor'],
      content: ({ version }) =>
        answer('Reference', { openapi: OPENAPI, info: { title: 'imagemill', version }, paths: {} }),
    },
  },
];

export const OPENAPI = '3.1.1';

function answer(schema: string, example: Json): Json {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, example } };
}
