/** @module The endpoints: method, path, description, response. The app adds a route for each. */
import { OUTPUTS } from '../../tables/formats.ts';
import type { Method } from '../middleware.ts';
import { RESULT_HEADERS, type ResultHeader } from '../respond/result-headers.ts';
import { type ApiContext, BINARY, formatsBody, type Json } from './schemas.ts';

/** A method of a path. */
export interface Operation {
  readonly method: Method | 'OPTIONS';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** Arguments of curl, and what it prints or the result is. The description starts with both. */
  readonly example?: { readonly command: string; readonly result: string };
  /** The form of the request body, if any. */
  readonly form?: 'convert' | 'batch' | 'identify';
  /** Whether the operation never needs an API key. */
  readonly isPublic?: boolean;
  readonly success: {
    readonly description: string;
    readonly headers?: readonly ResultHeader[];
    /** Absent if the response has no body. */
    readonly content?: (service: ApiContext) => Json;
  };
}

/** Content of a body of bytes. Generators read a body without a schema as JSON. */
export const FILE = { schema: BINARY };

/** The endpoints by their `operationId`. */
const ENDPOINTS = {
  convert: {
    method: 'POST',
    path: '/convert',
    summary: 'Convert one image',
    example: {
      command: '-F file=@photo.jpg -F output_format=webp -F width=1600 -o photo.webp',
      result:
        'The file `photo.webp`, at most 1600 pixels wide, without the place, the camera and other metadata. Headers describe it:\n\n' +
        '```http\nX-Image-Width: 1600\nX-Image-Height: 1067\nX-Removed-Metadata: place, time, camera\n```',
    },
    description:
      'Fields can have any order. Empty fields count as absent, unknown fields are ignored with a note, and a repeated field is an ' +
      'error. The body can also be the image itself (`image/*`, `application/octet-stream` or no type), with POST or PUT: the fields are then ' +
      'query parameters, an unknown one is an error, and the name of the file is that in `Content-Disposition`. ' +
      'The orientation of the camera is applied. If the colour profile is removed, colours are converted to sRGB first.',
    form: 'convert',
    success: {
      description: 'The converted file.',
      headers: Object.keys(RESULT_HEADERS) as ResultHeader[],
      content: ({ outputs }) => ({
        ...Object.fromEntries(outputs.map((output) => [OUTPUTS[output].mediaType, FILE])),
        'application/zip': FILE,
      }),
    },
  },
  convertBatch: {
    method: 'POST',
    path: '/batch',
    summary: 'Convert several images',
    example: {
      command: '-F files=@a.jpg -F files=@b.png -F output_format=webp -o converted.zip',
      result:
        'The archive `converted.zip` with `a.webp` and `b.webp`. With `-F combine=true -F output_format=pdf`, it is one PDF with a page for each.',
    },
    description:
      'All images have the same options. The archive contains the results in the order of the uploaded files. Each has ' +
      'the name of its file with the new extension, in the folder that the file has in an uploaded ZIP archive, otherwise in none; if a ' +
      'name occurs again, it gets ` (2)`. The file ' +
      '`errors.json` in the archive lists skipped files by index (from 0) and name, and with `manifest`, `manifest.json` lists the results. In an uploaded ZIP archive, ' +
      'system files (`__MACOSX`, `.DS_Store`, `._*`, `Thumbs.db`, `desktop.ini`) are ignored. An archive that is ' +
      'encrypted or damaged, or contains links, other archives, names longer than 1024 bytes or paths that lead out of it, is an error.',
    form: 'batch',
    success: {
      description:
        'A ZIP archive of the converted files, which can be read as a stream, or with `combine` one file.',
      headers: Object.keys(RESULT_HEADERS) as ResultHeader[],
      content: ({ combined }) => ({
        'application/zip': FILE,
        ...Object.fromEntries(combined.map((output) => [OUTPUTS[output].mediaType, FILE])),
      }),
    },
  },
  identify: {
    method: 'POST',
    path: '/identify',
    summary: 'Describe images',
    example: {
      command: '-F file=@photo.jpg -F reveal=true',
      result:
        'JSON with the size, the colours and more, and with `reveal` what the metadata gives away:\n\n' +
        '```json\n{"type": "jpg", "width": 4032, "height": 3024, "metadata": ["exif"], "revealed": {"values": [{"kind": "place", "source": "exif", "name": "GPSPosition", "value": "48.137154, 11.576124"}]}}\n```',
    },
    description:
      'Describes images by their headers, without decoding their pixels. With any option of `/convert`, `conversion` describes ' +
      'the result that these options would have, and with `plan` there is an `explanation`. The body can also be the image itself, as for `/convert`. An image that this ' +
      'server cannot convert has a `problem`; a file that is not an image is an error. A form with `file` or an image as the ' +
      'body returns one description, a form with `files` a list.',
    form: 'identify',
    success: {
      description: 'The description of the image, or a list.',
      content: () => jsonContent('Identified', IDENTIFIED),
    },
  },
  listFormats: {
    method: 'GET',
    path: '/formats',
    summary: 'List formats and limits',
    description: 'The formats that the tools on this machine support, and the limits of the server.',
    success: {
      description: 'The input and output formats, and the limits.',
      content: (service) => jsonContent('Formats', formatsBody(service)),
    },
  },
  getHealth: {
    method: 'GET',
    path: '/health',
    summary: 'Health',
    description: 'Status, version and current time of the service.',
    success: {
      description: 'The service is available.',
      content: ({ version }) =>
        jsonContent('Health', { status: 'ok', version, timestamp: '2026-11-21T01:46:55.265Z' }),
    },
  },
  getReference: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This reference',
    description: 'The API as an OpenAPI 3.1 document, for this machine and its settings.',
    isPublic: true,
    success: {
      description: 'The document.',
      content: ({ version }) =>
        jsonContent('Reference', {
          openapi: OPENAPI_VERSION,
          info: { title: 'imagemill', version },
          paths: {},
        }),
    },
  },
} as const satisfies Readonly<Record<string, Omit<Operation, 'operationId'> & { readonly method: Method }>>;

export type OperationId = keyof typeof ENDPOINTS;

/** An endpoint with one method. */
export interface Endpoint extends Operation {
  readonly method: Method;
  readonly operationId: OperationId;
}

export const OPERATIONS = Object.entries(ENDPOINTS).map(
  ([operationId, endpoint]) => ({ ...endpoint, operationId }) as Endpoint,
);

/** Returns an endpoint's methods except OPTIONS. `curl --upload-file` sends an image with PUT. */
export function methodsOf({ method, form }: Operation): readonly Method[] {
  if (method === 'OPTIONS') return [];
  return form === 'convert' || form === 'identify' ? [method, 'PUT'] : [method];
}

/** Returns the operation that names the methods of an endpoint. */
export const methodsOperation = ({ path, operationId }: Endpoint): Operation => ({
  method: 'OPTIONS',
  path,
  operationId: `${operationId}Methods`,
  isPublic: true,
  summary: 'Methods of this path',
  description:
    'Also the response to a preflight request of a browser (CORS), which the rate limit never rejects.',
  success: { description: '`Allow` has the methods.' },
});

/** Description of an image in the example. */
const IDENTIFIED = {
  name: 'photo.jpg',
  type: 'jpg',
  media_type: 'image/jpeg',
  bytes: 48_210,
  width: 1200,
  height: 800,
  orientation: 6,
  frames: 1,
  duration_ms: null,
  pages: 1,
  alpha: false,
  bits: 8,
  colour_space: 'rgb',
  profile: 'Display P3',
  hdr: null,
  metadata: ['exif'],
  convertible: true,
  problem: null,
  sha256: '5f8e3cf6a3a892aaabbdbb6cf273894493773960d4a324b105fee46eef430f11',
};

export const OPENAPI_VERSION = '3.1.1';

function jsonContent(schema: string, example: Json): Json {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, example } };
}
