import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { convert, fixture, postImage, sendForm } from '../helpers/client.ts';
import { useService } from '../helpers/service.ts';

const photo = await fixture('scene.jpg');

describe('responses', () => {
  const service = useService();

  describe('to GET /formats and GET /health', () => {
    it('list the formats in the documented order, and the limits', async () => {
      const { status, headers, body } = await sendForm(`${service.base}/formats`);
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/json; charset=utf-8']);
      expect(JSON.parse(body.toString())).to.deep.equal({
        input: ['png', 'jpg', 'jpeg', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'],
        output: ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'],
        combine: ['webp', 'gif', 'pdf'],
        access: 'public',
        limits: {
          max_file_bytes: 10_485_760,
          max_pixels: 50_000_000,
          max_total_pixels: 75_000_000,
          max_frames: 500,
          max_dimension: 65_535,
          max_batch_files: 20,
        },
      });
    });

    it('contain the status, the version and the time in UTC with milliseconds', async () => {
      const { status, headers, body } = await sendForm(`${service.base}/health`);
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/json; charset=utf-8']);
      const { status: health, version, timestamp, ...rest } = JSON.parse(body.toString());
      expect([health, rest]).to.deep.equal(['ok', {}]);
      expect(version).to.match(/^\d+\.\d+\.\d+/);
      expect(timestamp).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    });
  });

  describe('to POST /convert', () => {
    it('have the documented headers', async () => {
      const { status, headers, body } = await convert(service.base, photo, {}, 'Holiday.JPG');
      expect(status).to.equal(200);
      expect(Object.fromEntries(headers)).to.deep.include({
        'content-type': 'image/webp',
        'content-length': String(body.length),
        'content-disposition': 'attachment; filename=Holiday.webp',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      });
      expect(headers.get('server-timing')).to.match(
        /^upload;dur=[\d.]+, queue;dur=[\d.]+, prepare;dur=[\d.]+, convert;dur=[\d.]+$/,
      );
      expect(headers.get('x-request-id')).to.match(/^[\w-]{36}$/);
    });

    it('have the size of the result, and its SHA-256, also if it is streamed', async () => {
      for (const [name, fields, size] of [
        ['orientation-6.jpg', { output_format: 'jpg', strip_metadata: 'false' }, '120 × 80'],
        ['scene.jpg', { output_format: 'bmp', width: '700', enlarge: 'true' }, '700 × 467'],
        ['moving.gif', { output_format: 'gif', width: '20' }, '20 × 13'],
      ] as const) {
        const { headers, body } = await convert(service.base, await fixture(name), fields);
        expect(`${headers.get('x-image-width')} × ${headers.get('x-image-height')}`, name).to.equal(size);
        const digest = createHash('sha256').update(body).digest('base64');
        expect(headers.get('repr-digest'), name).to.equal(`sha-256=:${digest}:`);
      }
    });

    it('have no size for a PDF', async () => {
      const { headers } = await convert(service.base, photo, { output_format: 'pdf' });
      expect([headers.has('x-image-width'), headers.has('repr-digest')]).to.deep.equal([false, true]);
    });

    it('have an ASCII fallback name', async () => {
      const { headers } = await convert(service.base, photo, {}, 'Café-фото.png');
      expect(headers.get('content-disposition')).to.equal(
        `attachment; filename=Cafe-_.webp; filename*=UTF-8''Caf%C3%A9-%D1%84%D0%BE%D1%82%D0%BE.webp`,
      );
    });
  });

  it('to a method that is not allowed list the allowed ones', async () => {
    const allow = async (path: string) =>
      (await sendForm(service.base + path, { method: 'PATCH' })).headers.get('allow');
    expect(await allow('/convert')).to.equal('POST, PUT, OPTIONS');
    expect(await allow('/batch')).to.equal('POST, OPTIONS');
    expect(await allow('/formats')).to.equal('GET, HEAD, OPTIONS');
  });

  describe('to requests whose Accept prefers problem details', () => {
    const PROBLEM = 'application/problem+json';
    const problem = (accept: string) =>
      postImage(`${service.base}/convert?quality=0`, photo, { accept, 'content-type': 'image/jpeg' });

    it('have the members of RFC 9457 and those of other errors', async () => {
      const { status, headers, body } = await problem('application/problem+json, application/json;q=0.9');
      expect([status, headers.get('content-type'), headers.get('vary')]).to.deep.equal([
        400,
        'application/problem+json',
        'Accept',
      ]);
      expect(JSON.parse(body.toString())).to.deep.equal({
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        detail: 'Invalid quality "0": expected a whole number from 1 to 100, or auto.',
        reason: 'field_invalid',
        retryable: false,
        field: 'quality',
      });
    });

    it('but not with another Accept', async () => {
      for (const accept of [
        '*/*',
        'application/*',
        'application/json, application/problem+json;q=0.5',
        'text/html',
        ',',
      ]) {
        const { headers, body } = await problem(accept);
        expect(headers.get('content-type'), accept).to.equal('application/json; charset=utf-8');
        expect(JSON.parse(body.toString()).error.code).to.equal(400);
      }
    });

    it('but not with an Accept above 2 kB, which is ignored', async () => {
      const types = async (length: number) =>
        (await problem(`${PROBLEM}, ${'a/b,'.repeat(length)}`.slice(0, length))).headers.get('content-type');
      expect(await types(2048)).to.equal(PROBLEM);
      expect(await types(2049)).to.equal('application/json; charset=utf-8');
    });
  });

  it('to the page are not compressed with an Accept-Encoding above 2 kB, which is ignored', async () => {
    const encoding = async (length: number) => {
      const accepted = `gzip, ${'a,'.repeat(length)}`.slice(0, length);
      const { status, headers } = await sendForm(new URL('/docs', service.base).href, {
        headers: { 'accept-encoding': accepted },
      });
      return `${status} ${headers.get('content-encoding')}`;
    };
    expect(await encoding(2048)).to.equal('200 gzip');
    expect(await encoding(2049)).to.equal('200 null');
  });

  it('to other origins are readable with their headers, including errors', async () => {
    for (const path of ['/formats', '/nothing']) {
      const { headers } = await sendForm(service.base + path, {
        headers: { origin: 'https://example.com' },
      });
      expect(headers.get('access-control-allow-origin')).to.equal('*');
      expect(headers.get('access-control-expose-headers')?.split(',')).to.include.members([
        'Content-Disposition',
        'X-RateLimit-Remaining',
        'Retry-After',
        'X-Image-Width',
        'X-Image-Height',
        'Repr-Digest',
        'X-Conversion-Notes',
        'X-Conversion-Quality',
      ]);
    }
  });

  it('have the request ID of the request if it is valid, and another one otherwise', async () => {
    const idFor = async (id: string) =>
      (await sendForm(`${service.base}/health`, { headers: { 'x-request-id': id } })).headers.get(
        'x-request-id',
      );
    expect(await idFor('trace-42.a:b')).to.equal('trace-42.a:b');
    for (const id of ['has space', 'x'.repeat(200), '<script>', ''])
      expect(await idFor(id)).to.match(/^[\da-f]{8}-[\da-f-]{27}$/);
  });
});
