import { expect } from 'chai';
import { fixture, sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { useOwnServices } from '../helpers/service.ts';

describe('the settings of the app', () => {
  const { start, current } = useOwnServices();
  const allowedOriginFor = async (origin: string) =>
    (await sendForm(`${current().base}/health`, { headers: { origin } })).headers.get(
      'access-control-allow-origin',
    );

  it('allow the origins in CORS_ORIGIN, and no others', async () => {
    await start({ CORS_ORIGIN: 'https://a.example,https://b.example' });
    expect(await allowedOriginFor('https://b.example')).to.equal('https://b.example');
    expect(await allowedOriginFor('https://c.example')).to.equal(null);
  });

  it('allow no origin with CORS_ORIGIN=off', async () => {
    await start({ CORS_ORIGIN: 'off' });
    expect(await allowedOriginFor('https://a.example')).to.equal(null);
  });

  it('set the limits MAX_FILE_BYTES and MAX_BATCH_FILES, which error messages name', async () => {
    await start({ MAX_FILE_BYTES: '4000', MAX_BATCH_FILES: '2' });
    const photo = new Uint8Array(await fixture('scene.jpg'));
    const send = async (...files: Uint8Array<ArrayBuffer>[]) => {
      const body = new FormData();
      for (const file of files) body.append('files', new Blob([file]), 'a.jpg');
      const { status, message } = await sendForm(`${current().base}/batch`, { method: 'POST', body });
      return `${status} ${message}`;
    };
    expect(await send(photo, photo)).to.equal('200 ');
    expect(await send(photo, photo, photo)).to.equal('400 Too many files: at most 2 allowed in one request.');
    const longer = new Uint8Array(4001);
    longer.set(photo);
    expect(await send(longer)).to.equal(
      '413 File 1 ("a.jpg") is too large: at most 4 kB (4000 bytes) allowed.',
    );
  });
});

describe('the probes', () => {
  const { start, current } = useOwnServices();
  const probe = async (path: string) => {
    const { status, headers, body } = await sendForm(`${new URL(current().base).origin}/${path}`);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('x-ratelimit-limit')).to.equal(null);
    expect(status).to.equal(200);
    return JSON.parse(body.toString()) as { status: string; sandbox?: object };
  };

  it('report ok without counting for the rate limit, and /readyz reports the sandbox layers', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '1' });
    for (let round = 0; round < 3; round += 1) {
      expect(await probe('livez')).to.deep.equal({ status: 'ok' });
      expect((await sendForm(`${new URL(current().base).origin}/livez`)).status).to.equal(200);
      expect((await probe('readyz')).sandbox).to.have.keys(
        ...['limits', 'privileges', 'files', 'network', 'syscalls', 'processes'],
      );
    }
  });

  it('report ok at /livez and 503 at /readyz during shutdown', async () => {
    await start({});
    expect((await sendForm(`${new URL(current().base).origin}/readyz`)).status).to.equal(200);
    current().service.drain();
    expect((await sendForm(`${new URL(current().base).origin}/readyz`)).status).to.equal(503);
    expect((await sendForm(`${new URL(current().base).origin}/livez`)).status).to.equal(200);
  });

  it('report 503 at /readyz when conversions fail', async () => {
    await start({ MAGICK_BIN: await fakeMagick('exit 1') });
    const { status, body } = await sendForm(`${new URL(current().base).origin}/readyz`);
    expect([status, JSON.parse(body.toString()).status]).to.deep.equal([503, 'failing']);
  });
});
