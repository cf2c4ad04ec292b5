/** @module A request for every documented response. */
import { rm } from 'node:fs/promises';
import {
  type ClientResponse,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  postForm,
  sendForm,
} from './client.ts';
import { fakeMagick, NOT_ALLOWED, printMessage } from './fake-magick.ts';
import { exchange, parseAnswer } from './raw-http.ts';
import type { OwnService } from './service.ts';

/** A documented response and a request that provokes it. */
export interface ResponseCase {
  readonly operation: string;
  readonly status: number;
  /** Media type, or `no body`; `application/json` by default. */
  readonly type?: string;
  /** What provokes the response; part of the test title. */
  readonly how: string;
  /**
   * Settings of a separate service, which is shared by the cases with the same `how`. Without them,
   * the case uses the service of all other cases.
   */
  readonly settings?: () => Promise<Record<string, string>> | Record<string, string>;
  readonly send: (service: OwnService) => Promise<ClientResponse>;
}

/** Paths of the GET operations by operation ID. */
export const READS = { listFormats: '/formats', getHealth: '/health', getReference: '/openapi.json' };
const FORMS = {
  convert: { path: '/convert', part: 'file' },
  convertBatch: { path: '/batch', part: 'files' },
};
const IDENTIFY = { path: '/identify', part: 'file' };
const PATHS = { ...READS, convert: '/convert', convertBatch: '/batch', identify: '/identify' };
const IMAGES = {
  webp: 'image/webp',
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  bmp: 'image/bmp',
  pdf: 'application/pdf',
};

/** Posts a form with fixtures (by name) or raw bytes. */
async function post(
  { base }: OwnService,
  { path, part }: { path: string; part: string },
  files: readonly (string | Uint8Array)[],
  fields: Fields = {},
  headers: Fields = {},
): Promise<ClientResponse> {
  const parts = await Promise.all(
    files.map(
      async (file): Promise<FormFile> =>
        typeof file === 'string' ? [file, await fixture(file)] : ['bytes', file],
    ),
  );
  return postForm(base + path, formOf(fields, parts, part), headers);
}

/** Sends an incomplete request and parses the response. */
async function sendRaw({ base }: OwnService, text: string): Promise<ClientResponse> {
  const { status, headers, rest } = parseAnswer(await exchange(base, text));
  return { status, headers, body: Buffer.from(rest), message: '', outcome: `${status}`, notes: null };
}

const methodFor = (operation: string) =>
  operation.endsWith('Methods') ? 'OPTIONS' : operation in READS ? 'GET' : 'POST';
/** Returns the start of a request, without the blank line that ends the headers. */
const head = (operation: string, path: string) =>
  `${methodFor(operation)} /api/v1${path} HTTP/1.1\r\nHost: x\r\n`;
const formHead = (path: string) =>
  `${head('convert', path)}Content-Type: multipart/form-data; boundary=x\r\n`;

/** Returns a case: operation, status, what provokes the response, how it is sent, and the rest. */
const one = (
  operation: string,
  status: number,
  how: string,
  send: ResponseCase['send'],
  rest: Pick<ResponseCase, 'type' | 'settings'> = {},
): ResponseCase => ({ operation, status, how, send, ...rest });
const withSettings = (settings: Record<string, string>) => ({ settings: () => settings });

const pathCases = (operation: string, path: string): ResponseCase[] => [
  one(operation, 405, 'another method', ({ base }) => sendForm(base + path, { method: 'DELETE' })),
  one(
    `${operation}Methods`,
    204,
    'a plain request',
    ({ base }) => sendForm(base + path, { method: 'OPTIONS' }),
    { type: 'no body' },
  ),
  ...commonCases(operation, path),
  ...commonCases(`${operation}Methods`, path),
];

function commonCases(operation: string, path: string): ResponseCase[] {
  const plain = ({ base }: OwnService) => sendForm(base + path, { method: methodFor(operation) });
  const start = head(operation, path);
  const tooMany = async (service: OwnService) => {
    await sendForm(`${service.base}/health`);
    return plain(service);
  };
  const drained = (service: OwnService) => {
    service.service.drain();
    return plain(service);
  };
  const slow = withSettings({ UPLOAD_TIMEOUT_MS: '300' });
  return [
    one(operation, 408, 'a head that never ends', (service) => sendRaw(service, start), slow),
    one(operation, 429, 'one request too many', tooMany, withSettings({ RATE_LIMIT_PER_MINUTE: '1' })),
    one(operation, 431, 'headers without end', (at) => sendRaw(at, `${start}X: ${'x'.repeat(70_000)}`)),
    one(operation, 503, 'a service that shuts down', drained, withSettings({})),
  ];
}

/** Makes the next response fail unexpectedly. */
function breakJson({ service }: OwnService): void {
  service.app.set('json replacer', () => {
    throw new Error('unexpected');
  });
}

const readCases = Object.entries(READS).flatMap(([operation, path]): ResponseCase[] => {
  const plain = ({ base }: OwnService) => sendForm(base + path);
  const broken = (service: OwnService) => {
    breakJson(service);
    return plain(service);
  };
  return [
    one(operation, 200, 'a plain request', plain),
    one(operation, 500, 'an unexpected error', broken, withSettings({})),
  ];
});

const UPLOADS = { ...FORMS, identify: IDENTIFY };
const CODING = 'Connection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n';

/** Cases of every operation that receives files. */
const uploadCases = Object.entries(UPLOADS).flatMap(([operation, form]): ResponseCase[] => {
  const raw = (rest: string) => (service: OwnService) => sendRaw(service, `${formHead(form.path)}${rest}`);
  const auto = (service: OwnService) =>
    post(service, form, ['scene.jpg'], { output_format: 'auto' }, { accept: 'image/bmp' });
  const slow = withSettings({ UPLOAD_TIMEOUT_MS: '300' });
  return [
    one(operation, 400, 'no file', (service) => post(service, form, [])),
    one(operation, 406, 'an Accept that permits no format', auto),
    one(operation, 408, 'a body that never ends', raw('Content-Length: 9\r\n\r\n--x'), slow),
    one(operation, 415, 'a text', (service) => post(service, form, [new TextEncoder().encode('text')])),
    one(operation, 501, 'a body in a transfer coding that is not supported', raw(CODING)),
  ];
});

const formCases = Object.entries(FORMS).flatMap(([operation, form]): ResponseCase[] => {
  const send = (service: OwnService) => post(service, form, ['scene.jpg']);
  const noChunk = (service: OwnService) =>
    sendRaw(service, `${formHead(form.path)}Transfer-Encoding: chunked\r\n\r\nno\r\n`);
  const gone = async (service: OwnService) => {
    await rm(service.service.toolchain.magick?.path as string, { force: true });
    return send(service);
  };
  const tool = (script: string, more = {}) => ({
    settings: async () => ({ MAGICK_BIN: await fakeMagick(script), ...more }),
  });
  const refused = tool(`${printMessage(NOT_ALLOWED)}; exit 1`);
  const variants = (service: OwnService) => post(service, form, ['window.png'], { variants: '{"name":"a"}' });
  return [
    one(operation, 200, 'several variants', variants, { type: 'application/zip' }),
    one(operation, 400, 'a body that is not what HTTP says it is', noChunk),
    one(operation, 413, 'an image that is too large', send, withSettings({ MAX_PIXELS: '100' })),
    one(operation, 413, 'a tool that hangs', send, tool('sleep 60', { CONVERT_TIMEOUT_MS: '500' })),
    one(operation, 500, 'a tool that is refused what it needs', send, refused),
    one(operation, 503, 'a tool that has gone', gone, tool('exit 1')),
  ];
});

const sending =
  (form: { path: string; part: string }, files: readonly (string | Uint8Array)[], fields: Fields = {}) =>
  (service: OwnService) =>
    post(service, form, files, fields);
const NO_IMAGE = new Uint8Array(9);

/**
 * Cases of the endpoint that describes images. It runs no tool, and an image that is too large is
 * not an error.
 */
const identifyCases = (
  [
    [200, 'an image and an option', sending(IDENTIFY, ['window.png'], { format: 'jpg' })],
    [200, 'an image and its plan', sending(IDENTIFY, ['scene.svg'], { format: 'jpg', plan: 'true' })],
    [
      200,
      'images that it cannot convert',
      sending({ ...IDENTIFY, part: 'files' }, ['p3.jpg', 'scene.svg', 'pages.tiff']),
      withSettings({ MAX_PIXELS: '100' }),
    ],
    [
      413,
      'a file that is too large',
      sending(IDENTIFY, ['scene.jpg']),
      withSettings({ MAX_FILE_BYTES: '100' }),
    ],
    [
      500,
      'an unexpected error',
      (service: OwnService) => {
        breakJson(service);
        return post(service, IDENTIFY, ['scene.jpg']);
      },
      withSettings({ LOG_LEVEL: 'error' }),
    ],
  ] as const
).map(([status, how, send, settings]) => one('identify', status, how, send, settings));

export const CASES: readonly ResponseCase[] = [
  ...uploadCases,
  ...identifyCases,
  ...Object.entries(PATHS).flatMap(([operation, path]) => pathCases(operation, path)),
  ...readCases,
  ...formCases,
  ...Object.entries(IMAGES).map(([format, type]) =>
    one('convert', 200, 'an image with transparency', sending(FORMS.convert, ['window.png'], { format }), {
      type,
    }),
  ),
  ...(['webp', 'gif', 'pdf'] as const).map((format) => {
    const fields = { combine: 'true', format, on_error: 'skip' };
    const send = sending(FORMS.convertBatch, ['window.png', NO_IMAGE, 'moving.gif'], fields);
    const type = IMAGES[format];
    return one('convertBatch', 200, 'images that become one file, without one that fails', send, { type });
  }),
  one(
    'convert',
    304,
    'a result that the client has',
    async (service) => {
      const { headers } = await post(service, FORMS.convert, ['scene.png']);
      const known = { 'If-None-Match': headers.get('etag') ?? '' };
      return post(service, FORMS.convert, ['scene.png'], {}, known);
    },
    { type: 'no body' },
  ),
  one(
    'convert',
    200,
    'an image whose quality must be lowered',
    sending(FORMS.convert, ['window.png'], { format: 'jpg', quality: '100', max_bytes: '3000' }),
    { type: 'image/jpeg' },
  ),
  one(
    'convertBatch',
    200,
    'images with notes, and a file that is not an image',
    sending(FORMS.convertBatch, ['window.png', 'moving.gif', 'window.webp', NO_IMAGE], {
      format: 'jpg',
      on_error: 'skip',
      max_bytes: '1500',
    }),
    { type: 'application/zip' },
  ),
];
