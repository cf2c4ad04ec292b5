// @full
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { pdf } from '../../scripts/fixtures/pdf.ts';
import { makeZip } from '../../src/cli/doctor/attack-files.ts';
import { ERROR_CODES } from '../../src/tables/error-table.ts';
import type { ErrorCode } from '../../src/tables/errors.ts';
import {
  edgeCase,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  jsonOf,
  postForm,
  postImage,
  sendForm,
} from '../helpers/client.ts';
import { fakeMagick, NOT_ALLOWED, printMessage } from '../helpers/fake-magick.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import type { Document } from '../helpers/openapi.ts';
import { plain } from '../helpers/pixels.ts';
import { pathWithout } from '../helpers/process.ts';
import { dial, exchange, parseAnswer, readAll } from '../helpers/raw-http.ts';
import { type OwnService, useOwnServices } from '../helpers/service.ts';

/** Members of an error in addition to `code` and `message`. */
interface Details {
  readonly reason: string;
  readonly retryable: boolean;
  readonly field?: string;
  readonly limit?: number;
  readonly actual?: number;
  readonly setting?: string;
  readonly file?: { readonly index: number; readonly name: string | null };
}

/** Sends a request that fails, and returns the body of the response. */
type Provoke = (service: OwnService) => Promise<Buffer>;

interface Case {
  /** Settings of a separate service, instead of {@link SHARED}. */
  readonly settings?: () => Promise<Record<string, string>> | Record<string, string>;
  readonly send: Provoke;
  /** The expected details, besides the reason and `retryable`. */
  readonly details?: Omit<Details, 'reason' | 'retryable'>;
}

const svg = (width: number, height: number) =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"/>`);
const flat = (width: number, height: number) => plain(width, height).png().toBuffer();

const send =
  (query: string, image: () => Promise<Uint8Array> | Uint8Array, type = 'image/png'): Provoke =>
  async ({ base }) =>
    (await postImage(`${base}/convert${query}`, await image(), { 'content-type': type })).body;
const scene = () => fixture('scene.png');

/** Sends a form of text fields, and of files with the names of their parts. */
const form =
  (path: string, fields: Fields, ...files: readonly (readonly [part: string, file: Uint8Array])[]): Provoke =>
  async ({ base }) => {
    const named = files.map(([part, file]): FormFile => ['a.png', file, part]);
    return (await postForm(base + path, formOf(fields, named))).body;
  };
/** Sends text that HTTP clients do not send, and reads until the server closes the connection. */
const raw =
  (text: string): Provoke =>
  async ({ base }) =>
    Buffer.from(parseAnswer(await exchange(base, text)).rest);
const get =
  (path: string, init: RequestInit = {}): Provoke =>
  async ({ base }) =>
    (await sendForm(new URL(path, `${base}/`).href, init)).body;
/** Sends a request whose handler fails with an error of the system. */
const failWith =
  (code: string): Provoke =>
  async ({ base, service }) => {
    service.app.set('json replacer', () => {
      throw Object.assign(new Error('unexpected'), { code });
    });
    return (await sendForm(`${base}/openapi.json`)).body;
  };
const tool = (body: string) => async () => ({ MAGICK_BIN: await fakeMagick(body) });

const HEAD = 'POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ';

const KEYS = async () => {
  const file = await writeTempFile('keys', `shop:${'a'.repeat(64)}`);
  return { API_KEYS_FILE: file, REQUIRE_API_KEY: 'on' };
};

/** Settings of the service that most cases share. */
const SHARED = { EXTRA_INPUTS: 'pdf', MAX_BATCH_FILES: '2', MAX_VARIANTS: '1', TRUSTED_CLIENTS: '127.0.0.1' };

/** Reasons that other tests produce: their requests must be slow, or many. */
const ELSEWHERE = {
  TOO_MANY_CONNECTIONS: 'test/service/connections.test.ts',
  QUEUE_FULL: 'test/service/faults.test.ts',
  UPLOAD_TOO_SLOW: 'test/server/receive/upload.test.ts',
  VARIANTS_TOO_LARGE_IN_TOTAL: 'test/service/variants.test.ts',
} as const;

const CASES: Readonly<Record<Exclude<ErrorCode, keyof typeof ELSEWHERE>, Case>> = {
  MALFORMED_REQUEST: { send: raw('HELLO\r\n\r\n') },
  HOST_INVALID: { send: raw('GET /api/v1/health HTTP/1.1\r\nConnection: close\r\n\r\n') },
  INCOMPLETE_BODY: {
    async send({ base }) {
      const socket = await dial(base);
      socket.end(`${HEAD}image/png\r\nContent-Length: 1000\r\n\r\nxx`);
      return Buffer.from(parseAnswer(await readAll(socket)).rest);
    },
  },
  CHUNKS_TOO_SMALL: {
    send: raw(`${HEAD}image/png\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(2100)}`),
    details: { limit: 32 },
  },
  NOT_MULTIPART: { send: send('', () => Buffer.from('{}'), 'application/json') },
  MALFORMED_MULTIPART: { send: send('', () => Buffer.from('x'), 'multipart/form-data; boundary=xyz') },
  NO_FILE: { send: form('/convert', { width: '5' }), details: { field: 'file' } },
  FILE_SENT_AS_TEXT: { send: form('/batch', { files: 'a.png' }), details: { field: 'files' } },
  EMPTY_FILE: {
    send: form('/batch', {}, ['files', new Uint8Array(0)]),
    details: { file: { index: 0, name: 'a.png' } },
  },
  UNEXPECTED_FILE_FIELD: {
    send: form('/convert', {}, ['image', new Uint8Array(9)]),
    details: { field: 'image' },
  },
  TOO_MANY_FILES: {
    send: async (service) => {
      const file = ['files', await scene()] as const;
      return form('/batch', {}, file, file, file)(service);
    },
    details: { limit: 2, setting: 'MAX_BATCH_FILES' },
  },
  TOO_MANY_FIELDS: {
    send: form('/convert', Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`x${at}`, '1']))),
    details: { limit: 100 },
  },
  FIELD_IN_QUERY: { send: form('/convert?quality=5', { x: '1' }), details: { field: 'quality' } },
  UNKNOWN_PARAMETER: { send: send('?size=5', scene), details: { field: 'size' } },
  FIELD_REPEATED: { send: send('?width=5&width=6', scene), details: { field: 'width' } },
  FIELD_INVALID: { send: send('?max_bytes=5&format=png', scene), details: { field: 'max_bytes' } },
  NOT_AVAILABLE: {
    settings: async () => ({ PATH: await pathWithout(['qpdf']) }),
    send: async (service) =>
      form('/batch', { combine: 'true', format: 'pdf' }, ['files', await scene()])(service),
    details: { field: 'combine' },
  },
  CONFLICTING_FORMATS: {
    send: send('?format=png&output_format=gif', scene),
    details: { field: 'output_format' },
  },
  TOO_MANY_VARIANTS: {
    send: send(`?variants=${encodeURIComponent('[{"name":"a"},{"name":"b"}]')}`, scene),
    details: { field: 'variants', limit: 1, actual: 2, setting: 'MAX_VARIANTS' },
  },
  VARIANT_INVALID: {
    send: send(`?variants=${encodeURIComponent('{"name":"a","quality":0}')}`, scene),
    details: { field: 'variants' },
  },
  BAD_ARCHIVE: { send: form('/batch', {}, ['files', makeZip([])]) },
  CORRUPT_IMAGE: { send: send('', async () => (await scene()).subarray(0, 60)) },
  UNSUPPORTED_ENCODING: { send: send('', () => edgeCase('signed-samples.tiff')) },
  FILE_ENCRYPTED: { send: send('', () => pdf([], { trailer: '/Encrypt<</Filter/Other>>/ID[(a)(b)]' })) },
  PDF_TO_PDF: { send: send('?format=pdf', () => pdf([{ width: 9, height: 9 }])) },
  OUTPUT_DIMENSION_TOO_LARGE: { send: send('', () => flat(16_384, 2)), details: { limit: 16_383 } },
  PAGE_MISSING: { send: send('?pages=2', scene), details: { field: 'pages', limit: 1 } },
  CROP_OUTSIDE: { send: send('?crop=500,0,10,10', scene), details: { field: 'crop' } },
  BYTES_UNREACHABLE: {
    send: send('?max_bytes=10', () => flat(9, 9)),
    details: { field: 'max_bytes', limit: 10, actual: 0 }, // 0: depends on the encoder
  },
  CLIENT_ID_INVALID: { send: get('health', { headers: { 'x-client-id': 'x'.repeat(129) } }) },
  API_KEY_MISSING: { settings: KEYS, send: get('formats') },
  API_KEY_INVALID: { settings: KEYS, send: get('formats', { headers: { authorization: 'Bearer x' } }) },
  NOT_FOUND: { send: get('nothing') },
  METHOD_NOT_ALLOWED: { send: get('health', { method: 'POST' }) },
  NOT_ACCEPTABLE: {
    async send({ base }) {
      const headers = { accept: 'image/bmp', 'content-type': 'image/png' };
      return (await postImage(`${base}/convert?output_format=auto`, await scene(), headers)).body;
    },
  },
  REQUEST_TIMEOUT: {
    settings: () => ({ UPLOAD_TIMEOUT_MS: '300' }),
    send: raw('GET /api/v1/health HTTP/1.1\r\n'),
  },
  UPLOAD_TIMEOUT: {
    settings: () => ({ UPLOAD_TIMEOUT_MS: '300' }),
    send: raw(`${HEAD}image/png\r\nContent-Length: 9\r\n\r\nx`),
    details: { limit: 300, setting: 'UPLOAD_TIMEOUT_MS' },
  },
  PRECONDITION_FAILED: { send: get('/', { headers: { 'if-match': '"x"' } }) },
  FILE_TOO_LARGE: {
    settings: () => ({ MAX_FILE_BYTES: '100' }),
    send: send('', scene),
    details: { limit: 100, setting: 'MAX_FILE_BYTES' },
  },
  TOO_MANY_PIXELS: {
    settings: () => ({ MAX_PIXELS: '100' }),
    send: send('', scene),
    details: { limit: 100, actual: 9600, setting: 'MAX_PIXELS' },
  },
  WATERMARK_TOO_LARGE: {
    send: async (service) =>
      form('/convert', {}, ['file', await scene()], ['watermark', await flat(5001, 5000)])(service),
    details: { field: 'watermark' },
  },
  INPUT_DIMENSION_TOO_LARGE: {
    send: send('', () => flat(65_536, 2)),
    details: { limit: 65_535, actual: 65_536 },
  },
  DRAWING_TOO_LARGE: { send: send('', () => svg(20_000, 2)), details: { limit: 16_384, actual: 20_000 } },
  RESULT_TOO_LARGE: {
    send: send('?fit=cover&enlarge=true&width=10&height=70', () => flat(1000, 1)),
    details: { limit: 65_535, actual: 70_000 },
  },
  RESULT_TOO_LARGE_IN_TOTAL: {
    settings: () => ({ MAX_TOTAL_PIXELS: '30000' }),
    send: send('?fit=contain&width=400&height=400', () => fixture('moving.gif')),
    details: { limit: 30_000, actual: 480_000, setting: 'MAX_TOTAL_PIXELS' },
  },
  TOO_MANY_FRAMES: {
    settings: () => ({ MAX_FRAMES: '2' }),
    send: send('', () => fixture('moving.gif')),
    details: { limit: 2, actual: 3, setting: 'MAX_FRAMES' },
  },
  TOO_MANY_TOTAL_PIXELS: {
    settings: () => ({ MAX_TOTAL_PIXELS: '3000' }),
    send: send('', () => fixture('moving.gif')),
    details: { limit: 3000, actual: 4608, setting: 'MAX_TOTAL_PIXELS' },
  },
  RESOURCE_LIMIT_EXCEEDED: {
    settings: tool(
      `${printMessage("cache resources exhausted `in' @ error/cache.c/OpenPixelCache/4095.")}; exit 1`,
    ),
    send: send('', scene),
  },
  CONVERSION_TIMEOUT: {
    settings: async () => ({ MAGICK_BIN: await fakeMagick('sleep 60'), CONVERT_TIMEOUT_MS: '500' }),
    send: send('', scene),
    details: { limit: 500, setting: 'CONVERT_TIMEOUT_MS' },
  },
  UNSUPPORTED_TYPE: {
    send: send('', () => Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic')),
    details: { setting: 'EXTRA_INPUTS' },
  },
  CONVERSION_UNSUPPORTED: {
    settings: async () => ({ MAGICK_BIN: await fakeMagick('exit 1', '6.9.11-60'), PATH: '/nonexistent' }),
    send: send('', () => fixture('moving.gif')),
  },
  UNSUPPORTED_CONTENT_ENCODING: {
    send: raw(`${HEAD}image/png\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx`),
  },
  RANGE_NOT_SATISFIABLE: { send: get('/', { headers: { range: 'bytes=999999999-' } }) },
  RATE_LIMITED: {
    settings: () => ({ RATE_LIMIT_PER_MINUTE: '1' }),
    send: async (service) => {
      await get('health')(service);
      return get('health')(service);
    },
    details: { limit: 1, setting: 'RATE_LIMIT_PER_MINUTE' },
  },
  HEADERS_TOO_LARGE: { send: raw(`GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`) },
  INTERNAL: { settings: tool(`${printMessage(NOT_ALLOWED)}; exit 1`), send: send('', scene) },
  METHOD_UNKNOWN: { send: raw('FOO / HTTP/1.1\r\nHost: x\r\n\r\n') },
  TRANSFER_CODING: { send: raw(`${HEAD}image/png\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`) },
  OVERLOADED: { settings: () => ({ LOG_LEVEL: 'warn' }), send: failWith('EMFILE') },
  DISK_FULL: { settings: () => ({ LOG_LEVEL: 'warn' }), send: failWith('ENOSPC') },
  TEMP_DIR_UNWRITABLE: { settings: () => ({ LOG_LEVEL: 'warn' }), send: failWith('EROFS') },
  SHUTTING_DOWN: {
    settings: () => ({ LOG_LEVEL: 'error' }),
    send: (service) => {
      service.service.drain();
      return get('health')(service);
    },
  },
  CONVERTER_UNAVAILABLE: {
    settings: tool('exit 1'),
    send: async (service) => {
      await rm(service.service.toolchain.magick?.path as string, { force: true });
      return send('', scene)(service);
    },
  },
};

const RETRYABLE: readonly ErrorCode[] = [
  'REQUEST_TIMEOUT',
  'UPLOAD_TIMEOUT',
  'RATE_LIMITED',
  'OVERLOADED',
  'DISK_FULL',
  'TEMP_DIR_UNWRITABLE',
  'SHUTTING_DOWN',
  'CONVERTER_UNAVAILABLE',
];

describe('an error response', () => {
  const { startShared, current } = useOwnServices();
  let document: Document;
  before(async () => {
    await startShared(SHARED);
    document = jsonOf(await sendForm(`${current().base}/openapi.json`));
  });

  for (const [code, { settings, send: provoke, details = {} }] of Object.entries(CASES) as [
    ErrorCode,
    Case,
  ][]) {
    it(`with the reason ${code.toLowerCase()} has its details`, async () => {
      await startShared(settings ? await settings() : SHARED);
      const body = await provoke(current());
      const { error } = JSON.parse(body.toString());
      const { code: _status, message: _message, ...others } = error;
      const { actual } = details;
      expect(actual === 0 ? { ...others, actual: 0 } : others).to.deep.equal({
        reason: code.toLowerCase(),
        retryable: RETRYABLE.includes(code),
        ...details,
      });
    });
  }

  it('has a reason that the API reference lists, and the reference lists no other', () => {
    const { error } = document.components.schemas.Error?.properties ?? {};
    expect(error?.properties?.reason?.enum).to.deep.equal(ERROR_CODES.map((code) => code.toLowerCase()));
    expect(Object.keys({ ...CASES, ...ELSEWHERE })).to.have.members([...ERROR_CODES]);
  });
});
