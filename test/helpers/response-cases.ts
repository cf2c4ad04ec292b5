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
   * Settings of a separate service, which is shared by the cases with the same `how`. Without them, the case uses the
   * service of all other cases.
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

/** Cases of a path. */
const pathCases = (operation: string, path: string): ResponseCase[] => [
  {
    operation,
    status: 405,
    how: 'another method',
    send: ({ base }) => sendForm(base + path, { method: 'DELETE' }),
  },
  {
    operation: `${operation}Methods`,
    status: 204,
    type: 'no body',
    how: 'a plain request',
    send: ({ base }) => sendForm(base + path, { method: 'OPTIONS' }),
  },
  ...commonCases(operation, path),
  ...commonCases(`${operation}Methods`, path),
];

/** Cases of every operation. */
const commonCases = (operation: string, path: string): ResponseCase[] => [
  {
    operation,
    status: 408,
    how: 'a head that never ends',
    settings: () => ({ UPLOAD_TIMEOUT_MS: '300' }),
    send: (service) => sendRaw(service, head(operation, path)),
  },
  {
    operation,
    status: 429,
    how: 'one request too many',
    settings: () => ({ RATE_LIMIT_PER_MINUTE: '1' }),
    async send({ base }) {
      await sendForm(`${base}/health`);
      return sendForm(base + path, { method: methodFor(operation) });
    },
  },
  {
    operation,
    status: 431,
    how: 'headers without end',
    send: (service) => sendRaw(service, `${head(operation, path)}X: ${'x'.repeat(70_000)}`),
  },
  {
    operation,
    status: 503,
    how: 'a service that shuts down',
    settings: () => ({}),
    send({ base, service }) {
      service.drain();
      return sendForm(base + path, { method: methodFor(operation) });
    },
  },
];

/** Makes the next response fail unexpectedly. */
function breakJson({ service }: OwnService): void {
  service.app.set('json replacer', () => {
    throw new Error('unexpected');
  });
}

const readCases = Object.entries(READS).flatMap(([operation, path]): ResponseCase[] => [
  { operation, status: 200, how: 'a plain request', send: ({ base }) => sendForm(base + path) },
  {
    operation,
    status: 500,
    how: 'an unexpected error',
    settings: () => ({}),
    send(service) {
      breakJson(service);
      return sendForm(service.base + path);
    },
  },
]);

const UPLOADS = { ...FORMS, identify: IDENTIFY };

/** Cases of every operation that receives files. */
const uploadCases = Object.entries(UPLOADS).flatMap(([operation, { path, part }]): ResponseCase[] => [
  { operation, status: 400, how: 'no file', send: (service) => post(service, { path, part }, []) },
  {
    operation,
    status: 408,
    how: 'a body that never ends',
    settings: () => ({ UPLOAD_TIMEOUT_MS: '300' }),
    send: (service) => sendRaw(service, `${formHead(path)}Content-Length: 9\r\n\r\n--x`),
  },
  {
    operation,
    status: 415,
    how: 'a text',
    send: (service) => post(service, { path, part }, [new TextEncoder().encode('text')]),
  },
  {
    operation,
    status: 501,
    how: 'a body in a transfer coding that is not supported',
    send: (service) => {
      const coding = 'Connection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n';
      return sendRaw(service, `${formHead(path)}${coding}`);
    },
  },
]);

const formCases = Object.entries(FORMS).flatMap(([operation, { path, part }]): ResponseCase[] => {
  const send = (service: OwnService) => post(service, { path, part }, ['scene.jpg']);
  return [
    {
      operation,
      status: 400,
      how: 'a body that is not what HTTP says it is',
      send: (service) => sendRaw(service, `${formHead(path)}Transfer-Encoding: chunked\r\n\r\nno\r\n`),
    },
    {
      operation,
      status: 413,
      how: 'an image that is too large',
      settings: () => ({ MAX_PIXELS: '100' }),
      send,
    },
    {
      operation,
      status: 500,
      how: 'a tool that is refused what it needs',
      settings: async () => ({ MAGICK_BIN: await fakeMagick(`${printMessage(NOT_ALLOWED)}; exit 1`) }),
      send,
    },
    {
      operation,
      status: 413,
      how: 'a tool that hangs',
      settings: async () => ({ MAGICK_BIN: await fakeMagick('sleep 60'), CONVERT_TIMEOUT_MS: '500' }),
      send,
    },
    {
      operation,
      status: 503,
      how: 'a tool that has gone',
      settings: async () => ({ MAGICK_BIN: await fakeMagick('exit 1') }),
      async send(service) {
        await rm(service.service.toolchain.magick?.path as string, { force: true });
        return send(service);
      },
    },
  ];
});

/** Cases of the endpoint that describes images. It runs no tool, and an image that is too large is not an error. */
const identifyCases = [
  {
    status: 200,
    how: 'an image and an option',
    send: (service) => post(service, IDENTIFY, ['window.png'], { format: 'jpg' }),
  },
  {
    status: 200,
    how: 'an image and its plan',
    send: (service) => post(service, IDENTIFY, ['scene.svg'], { format: 'jpg', plan: 'true' }),
  },
  {
    status: 200,
    how: 'images that it cannot convert',
    settings: () => ({ MAX_PIXELS: '100' }),
    send: (service) => post(service, { ...IDENTIFY, part: 'files' }, ['p3.jpg', 'scene.svg', 'pages.tiff']),
  },
  {
    status: 413,
    how: 'a file that is too large',
    settings: () => ({ MAX_FILE_BYTES: '100' }),
    send: (service) => post(service, IDENTIFY, ['scene.jpg']),
  },
  {
    status: 500,
    how: 'an unexpected error',
    settings: () => ({ LOG_LEVEL: 'error' }),
    send(service) {
      breakJson(service);
      return post(service, IDENTIFY, ['scene.jpg']);
    },
  },
] satisfies Omit<ResponseCase, 'operation'>[];

const acceptCases = Object.entries(UPLOADS).map(
  ([operation, { path, part }]): ResponseCase => ({
    operation,
    status: 406,
    how: 'an Accept that permits no format',
    send: (service) =>
      post(service, { path, part }, ['scene.jpg'], { output_format: 'auto' }, { accept: 'image/bmp' }),
  }),
);

/** All cases. */
export const CASES: readonly ResponseCase[] = [
  ...acceptCases,
  ...uploadCases,
  ...identifyCases.map((one) => ({ operation: 'identify', ...one })),
  ...Object.entries(PATHS).flatMap(([operation, path]) => pathCases(operation, path)),
  ...readCases,
  ...formCases,
  ...Object.entries(IMAGES).map(
    ([format, type]): ResponseCase => ({
      operation: 'convert',
      status: 200,
      type,
      how: 'an image with transparency',
      send: (service) => post(service, FORMS.convert, ['window.png'], { format }),
    }),
  ),
  ...(['webp', 'gif', 'pdf'] as const).map(
    (format): ResponseCase => ({
      operation: 'convertBatch',
      status: 200,
      type: IMAGES[format],
      how: 'images that become one file, without one that fails',
      send: (service) =>
        post(service, FORMS.convertBatch, ['window.png', new Uint8Array(9), 'moving.gif'], {
          combine: 'true',
          format,
          on_error: 'skip',
        }),
    }),
  ),
  {
    operation: 'convert',
    status: 304,
    type: 'no body',
    how: 'a result that the client has',
    async send(service) {
      const { headers } = await post(service, FORMS.convert, ['scene.png']);
      const known = { 'If-None-Match': headers.get('etag') ?? '' };
      return post(service, FORMS.convert, ['scene.png'], {}, known);
    },
  },
  {
    operation: 'convert',
    status: 200,
    type: 'image/jpeg',
    how: 'an image whose quality must be lowered',
    send: (service) =>
      post(service, FORMS.convert, ['window.png'], { format: 'jpg', quality: '100', max_bytes: '3000' }),
  },
  ...Object.entries(FORMS).map(
    ([operation, form]): ResponseCase => ({
      operation,
      status: 200,
      type: 'application/zip',
      how: 'several variants',
      send: (service) => post(service, form, ['window.png'], { variants: '{"name":"a"}' }),
    }),
  ),
  {
    operation: 'convertBatch',
    status: 200,
    type: 'application/zip',
    how: 'images with notes, and a file that is not an image',
    send: (service) =>
      post(service, FORMS.convertBatch, ['window.png', 'moving.gif', 'window.webp', new Uint8Array(9)], {
        format: 'jpg',
        on_error: 'skip',
        max_bytes: '1500',
      }),
  },
];
