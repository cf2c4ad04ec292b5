import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { expect } from 'chai';
import sharp from 'sharp';
import { type ClientSettings, createClient, ImagemillError } from '../../src/client/library/index.ts';
import { convert, fixture, fixturePath } from '../helpers/client.ts';
import { startService, useOwnServices, useService } from '../helpers/service.ts';
import { useServers } from '../helpers/stub-server.ts';
import { failure } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

const photo = await fixture('scene.jpg');

describe('the client for applications', () => {
  const service = useService();
  const client = () => createClient(service.base);

  const SOURCES: Readonly<Record<string, () => Promise<Blob | Uint8Array | ArrayBuffer | ReadableStream>>> = {
    'a file on disk': () => openAsBlob(fixturePath('scene.jpg'), { type: 'text/plain' }),
    bytes: async () => photo,
    'an ArrayBuffer': async () => new Uint8Array(photo).buffer,
    'a stream': async () => new Blob([new Uint8Array(photo)]).stream(),
  };
  for (const [name, open] of Object.entries(SOURCES)) {
    it(`converts ${name}, as the body and in a form, to the same bytes`, async () => {
      const sent: unknown[] = [];
      const fetch: typeof globalThis.fetch = (url, init) => {
        sent.push(init?.body);
        return globalThis.fetch(url, init);
      };
      const own = createClient(service.base, { fetch });
      const options = { output_format: 'png', width: 60, enlarge: false } as const;
      const plain = await own.convert(await open(), options);
      expect(plain).to.include({ name: 'image.png', type: 'image/png', width: 60, height: 40 });
      const form = await own.convert(await open(), options, { form: true, name: 'größe.jpg' });
      expect(form).to.include({ name: 'größe.png', width: 60, height: 40 });
      expect(sent.map((body) => body instanceof FormData)).to.deep.equal([false, true]);
      const expected = await convert(service.base, photo, { format: 'png', width: '60' });
      for (const { response } of [plain, form])
        expect((await bytesOf(response)).equals(expected.body)).to.equal(true);
    });
  }

  it('returns the digest and the key of a result, with which it gets only another result', async () => {
    const { digest, key, ms, response } = await client().convert(photo, { output_format: 'png' });
    const sha256 = createHash('sha256').update(await bytesOf(response));
    expect(digest).to.equal(sha256.digest('base64'));
    expect(ms).to.be.at.least(0);
    const headers = { 'If-None-Match': `"${key}"` };
    const error = await failure(client().convert(photo, { output_format: 'png' }, { headers }));
    expect(error).to.include({ status: 304 });
  });

  it('returns the formats and the version of the service', async () => {
    const { input, output, limits } = await client().formats();
    expect([input.includes('jpeg'), output.includes('webp')]).to.deep.equal([true, true]);
    expect(limits.max_batch_files).to.equal(20);
    expect((await client().health()).version).to.match(/^\d+\.\d+\.\d+/);
  });

  for (const name of ["Größe (1)'s *copy*.jpg", '日本.jpg', 'a "quoted" name.jpg']) {
    it(`derives the name of the result from the name ${name}`, async () => {
      const file = new File([new Uint8Array(photo)], name);
      const fromFile = await client().convert(file, { width: 10 });
      const fromSetting = await client().convert(photo, { width: 10 }, { name });
      for (const result of [fromFile, fromSetting]) {
        await result.response.body?.cancel();
        expect(result.name).to.equal(name.replace('.jpg', '.webp'));
      }
    });
  }

  it('combines images to one file, and says which are left out', async () => {
    const files = [photo, Buffer.from('no image'), photo].map(
      (bytes, at) => new File([new Uint8Array(bytes)], `${at}.jpg`),
    );
    const options = { combine: true, output_format: 'gif', delay: 70, on_error: 'skip' } as const;
    const result = await client().batch(files, options);
    expect(result).to.include({ name: 'combined.gif', type: 'image/gif' });
    expect(result).to.deep.include({ skipped: [1], notes: ['files-skipped'] });
    expect((await sharp(await bytesOf(result.response)).metadata()).delay).to.deep.equal([70, 70]);
  });

  it('returns the notes and the quality of a result', async () => {
    const first = await client().convert(await fixture('moving.gif'), { output_format: 'jpg' });
    await first.response.body?.cancel();
    expect(first.notes).to.include('first-frame-only');
    const limited = await client().convert(photo, { output_format: 'jpg', max_bytes: 1500 });
    expect(limited.quality).to.be.within(10, 80);
    expect((await bytesOf(limited.response)).length).to.be.at.most(1500);
  });

  it('returns an archive of variants', async () => {
    const variants = [
      { name: 'small', width: 20 },
      { name: 'square', width: 30, height: 30, fit: 'cover', output_format: 'png' },
      { name: 'zoom', format: 'jpg' }, // as docs/api.md writes it
    ] as const;
    const { type, response } = await client().convert(photo, { variants }, { name: 'scene.jpg' });
    expect(type).to.equal('application/zip');
    const names = (await readZip(await bytesOf(response))).map((entry) => entry.name);
    const results = ['scene-small.webp', 'scene-square.png', 'scene-zoom.jpg'];
    expect(names).to.have.members([...results, 'manifest.json']);
  });

  it('describes an image, and with options what its conversion would result in', async () => {
    const file = new File([new Uint8Array(photo)], 'scene.jpg');
    const plain = await client().identify(file);
    expect(plain).to.include({ name: 'scene.jpg', type: 'jpg', width: 120, height: 80, convertible: true });
    expect(plain).to.not.have.property('conversion');
    const { conversion } = await client().identify(photo, { output_format: 'png', width: 60 });
    expect(conversion).to.include({ type: 'png', width: 60, height: 40 });
  });

  it('sends other headers of a request', async () => {
    const headers = { Accept: 'image/png' };
    for (const output_format of ['auto', 'smallest'] as const) {
      const { type, response } = await client().convert(photo, { output_format }, { headers });
      await response.body?.cancel();
      expect(type, output_format).to.equal('image/png');
    }
  });

  for (const [disposition, name] of [
    ["attachment; filename*=UTF-8''..%2F..%2Fx.png", 'x.png'],
    ['attachment; filename="..\\\\..\\\\x.png"', 'x.png'],
    ["attachment; filename*=UTF-8''a%2F..", ''],
    [`attachment; filename="y.png"; filename*=UTF-8''%E0%A4%A`, 'y.png'],
  ] as const) {
    it(`returns the name ${name || 'without characters'} for Content-Disposition: ${disposition}`, async () => {
      const headers = { 'content-type': 'image/png', 'content-disposition': disposition };
      const fetch = async () => new Response('x', { headers });
      expect((await createClient('http://x', { fetch }).convert(photo)).name).to.equal(name);
    });
  }

  describe('with a redirect', () => {
    const servers = useServers();

    it('to the same host sends the image and the key again', async () => {
      const url = await servers.serve((req, res) => {
        res.writeHead(308, { location: `${service.base.replace('/api/v1', '')}${req.url}` }).end();
      });
      const { response } = await createClient(url, { key: 'secret' }).convert(photo, { format: 'png' });
      expect((await sharp(await bytesOf(response)).metadata()).format).to.equal('png');
    });

    it('to another host sends nothing to it, and throws an error that names it', async () => {
      let requests = 0;
      const other = await servers.serve((_req, res) => {
        requests += 1;
        res.end();
      });
      const target = other.replace('127.0.0.1', 'localhost');
      const url = await servers.serve((req, res) => {
        res.writeHead(307, { location: target + req.url }).end();
      });
      const error = await failure<Error>(createClient(url, { key: 'secret' }).convert(photo));
      expect([error.message, requests]).to.deep.equal([
        `${url}/api/v1 redirects to ${target}, to which nothing was sent: use the address of the service`,
        0,
      ]);
    });

    it('from https to http sends nothing', async () => {
      const sent: string[] = [];
      const fetch: typeof globalThis.fetch = async (url) => {
        sent.push(String(url));
        return new Response(null, { status: 307, headers: { location: 'http://x/api/v1/health' } });
      };
      const error = await failure<Error>(createClient('https://x', { fetch }).health());
      expect(error.message).to.include('redirects to http://x');
      expect(sent).to.deep.equal(['https://x/api/v1/health']);
    });
  });

  describe('throws an error', () => {
    it('with the reason and the details that the service states', async () => {
      const error = await failure<ImagemillError>(client().convert(photo, { quality: 101 }));
      expect(error).to.be.instanceOf(ImagemillError);
      expect(error).to.include({ name: 'ImagemillError', status: 400, reason: 'field_invalid' });
      expect(error.details).to.include({ field: 'quality', retryable: false });
      expect(error.message).to.include('quality');
      expect(await failure(client().identify(new TextEncoder().encode('text')))).to.include({
        status: 415,
        reason: 'unsupported_type',
      });
      expect(await failure(client().batch([]))).to.include({ status: 400, reason: 'no_file' });
    });

    for (const [status, body] of [
      [200, '<html>'],
      [502, 'Bad Gateway'],
      [502, '{"error":"upstream"}'],
    ] as const) {
      it(`without a reason for the response ${status} of a proxy with the body ${body}`, async () => {
        const fetch = async () => new Response(body, { status, headers: { 'content-type': 'text/html' } });
        const error = await failure(createClient('', { fetch }).convert(photo));
        expect(error).to.be.instanceOf(ImagemillError).and.include({ status, reason: undefined });
      });
    }

    it('that names the address if the service cannot be reached, also one without http', async () => {
      const own = await startService();
      await own.stop();
      const error = await failure<Error>(createClient(own.base).convert(photo));
      expect(error).to.be.instanceOf(TypeError);
      expect(error.message).to.match(new RegExp(`^cannot reach ${own.base}: .*ECONNREFUSED`));
      for (const url of ['localhost:3000', 'images.example'])
        expect(await failure(createClient(url).health())).to.include({
          message: `cannot reach ${url}/api/v1: the address must start with http:// or https://`,
        });
    });

    it('after 64 kB of an error without an end', async () => {
      let [chunks, isCancelled] = [0, false];
      const fetch = async () => {
        const body = new ReadableStream({
          pull(stream) {
            chunks += 1;
            if (chunks > 1000) stream.close();
            else stream.enqueue(new Uint8Array(10_000));
          },
          cancel() {
            isCancelled = true;
          },
        });
        return new Response(body, { status: 500 });
      };
      expect(await failure(createClient('', { fetch }).convert(photo))).to.include({ status: 500 });
      expect([isCancelled, chunks < 10]).to.deep.equal([true, true]);
    });

    for (const [what, image, settings, size] of [
      ['an image', new Uint8Array(2_000_000), {}, '2 MB'],
      ['a small image', new Uint8Array(1234), {}, '2 kB'],
      ['a form', new Uint8Array(2_100_000), { form: true }, '2.1 MB'],
      ['a stream', new Blob(['x']).stream(), {}, 'the request'],
    ] as const) {
      it(`that names the size of ${what} if a proxy answers 413`, async () => {
        const fetch = async () => new Response('<html>413 Request Entity Too Large</html>', { status: 413 });
        expect(await failure(createClient('', { fetch }).convert(image, {}, settings))).to.include({
          reason: 'proxy_413',
          message: `A proxy in front of the server refused ${size}. Send less, or raise its limit (nginx: client_max_body_size).`,
        });
      });
    }

    it('of the signal if it aborts while the image is sent', async () => {
      const controller = new AbortController();
      const body = new ReadableStream({
        start: (stream) => stream.enqueue(new Uint8Array(photo.subarray(0, 1000))),
        pull: () => controller.abort(new Error('stopped')),
      });
      const error = await failure(client().convert(body, {}, { signal: controller.signal }));
      expect(error).to.include({ message: 'stopped' });
    });
  });

  describe('repeats a request', () => {
    const services = useOwnServices();
    const servers = useServers();
    /** Creates a client whose first `busy` responses are 429 or 503, and records its requests. */
    const busyClient = (busy: number, retryAfter: string, settings: ClientSettings = {}) => {
      const sent: RequestInit[] = [];
      const fetch: typeof globalThis.fetch = async (url, init = {}) => {
        sent.push(init);
        if (sent.length > busy) return globalThis.fetch(url, init);
        const error = { code: 503, message: 'Busy.', reason: 'queue_full', retryable: true };
        const headers = { 'retry-after': retryAfter };
        return Response.json({ error }, { status: sent.length % 2 ? 429 : 503, headers });
      };
      return { sent, ...createClient(service.base, { fetch, ...settings }) };
    };

    it('with the same body and key after 429 and 503, as often as permitted', async () => {
      const busy = busyClient(4, '0.01', { key: 'secret' });
      const { response } = await busy.convert(photo, { output_format: 'png' });
      expect((await bytesOf(response)).subarray(1, 4).toString()).to.equal('PNG');
      expect(busy.sent).to.have.length(5);
      expect(busy.sent.map(({ headers }) => new Headers(headers).get('authorization'))).to.deep.equal(
        busy.sent.map(() => 'Bearer secret'),
      );
    });

    it('at once if Retry-After is 0, and not more often than permitted', async () => {
      const busy = busyClient(9, '0', { retries: 2 });
      expect(await failure(busy.convert(photo))).to.include({ status: 429, retryAfter: 0, retryDelayS: 0 });
      expect(busy.sent).to.have.length(3);
    });

    it('not with a stream, which can be sent only once', async () => {
      const busy = busyClient(1, '0.01');
      const stream = new Blob([new Uint8Array(photo)]).stream();
      expect(await failure(busy.convert(stream))).to.include({ status: 429 });
      expect(busy.sent).to.have.length(1);
    });

    it('once at once if the server closes the connection, except for a stream and with retries: 0', async () => {
      let requests = 0;
      const closing = (settings?: ClientSettings) => {
        const fetch: typeof globalThis.fetch = (url, init) => {
          requests += 1;
          return globalThis.fetch(requests === 1 ? String(url).replace(service.base, closed) : url, init);
        };
        requests = 0;
        return createClient(service.base, { fetch, ...settings });
      };
      const closed = await servers.serve((request) => request.socket.destroy());
      const result = await closing().convert(photo, { output_format: 'png' });
      expect((await bytesOf(result.response)).subarray(1, 4).toString()).to.equal('PNG');
      expect(requests).to.equal(2);
      const stream = new Blob([new Uint8Array(photo)]).stream();
      expect(await failure(closing().convert(stream))).to.be.instanceOf(TypeError);
      expect(await failure(closing({ retries: 0 }).convert(photo))).to.be.instanceOf(TypeError);
      expect(requests).to.equal(1);
      expect(await failure(createClient(closed).convert(photo))).to.be.instanceOf(TypeError);
    });

    it('not if the service asks for more than two minutes', async () => {
      const busy = busyClient(1, '121');
      expect(await failure(busy.convert(photo))).to.include({ status: 429, retryAfter: 121 });
    });

    it('after a call of onRetry with the error and the time, and not after maxWaitMs in total', async () => {
      const waits: unknown[] = [];
      const onRetry = ({ status }: ImagemillError, waitMs: number) => void waits.push([status, waitMs]);
      const busy = busyClient(9, '0.01', { maxWaitMs: 25, onRetry });
      expect(await failure(busy.convert(photo))).to.include({ status: 429, retryAfter: 0.01 });
      expect(waits).to.deep.equal([
        [429, 10],
        [503, 10],
      ]);
    });

    it('not if the signal aborts during the delay', async () => {
      const controller = new AbortController();
      const busy = busyClient(1, '60');
      const error = failure(busy.convert(photo, {}, { signal: controller.signal }));
      setImmediate(() => controller.abort(new Error('stopped')));
      expect(await error).to.include({ message: 'stopped' });
      expect(busy.sent).to.have.length(1);
    });

    it('never with retries: 0, and reports the delay that the service states', async () => {
      await services.start({ RATE_LIMIT_PER_MINUTE: '1' });
      const limited = createClient(services.current().base, { retries: 0 });
      await limited.identify(photo);
      const error = await failure<ImagemillError>(limited.identify(photo));
      expect(error).to.include({ status: 429, reason: 'rate_limited' });
      expect(error.retryAfter).to.be.within(1, 60);
    });
  });
});
