import { expect } from 'chai';
import { sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { useOwnServices } from '../helpers/service.ts';

describe('the app', () => {
  const { start, current } = useOwnServices();
  const allowedOriginFor = async (origin: string) =>
    (await sendForm(`${current().base}/health`, { headers: { origin } })).headers.get(
      'access-control-allow-origin',
    );
  /** Returns what a probe answers, which no cache may keep, and which does not count. */
  const probe = async (path: string) => {
    const { status, headers, body } = await sendForm(new URL(path, current().base).href);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('x-ratelimit-limit')).to.equal(null);
    const { sandbox, ...others } = JSON.parse(body.toString()) as { status: string; sandbox?: object };
    return { status, sandbox, body: others };
  };

  it('allows the origins in CORS_ORIGIN, and no others', async () => {
    await start({ CORS_ORIGIN: 'https://a.example,https://b.example' });
    expect(await allowedOriginFor('https://b.example')).to.equal('https://b.example');
    expect(await allowedOriginFor('https://c.example')).to.equal(null);
  });

  it('allows no origin with CORS_ORIGIN=off', async () => {
    await start({ CORS_ORIGIN: 'off' });
    expect(await allowedOriginFor('https://a.example')).to.equal(null);
  });

  it('reports ok at the probes, and the sandbox layers at /readyz, and 503 there during shutdown', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '1' });
    const ok = { status: 200, body: { status: 'ok' } };
    expect(await probe('/livez')).to.deep.equal({ ...ok, sandbox: undefined });
    const ready = await probe('/readyz');
    expect(ready).to.deep.include(ok);
    expect(ready.sandbox).to.have.keys('limits', 'privileges', 'files', 'network', 'syscalls', 'processes');
    current().service.drain();
    expect(await probe('/livez')).to.deep.include(ok);
    expect(await probe('/readyz')).to.deep.include({ status: 503, body: { status: 'draining' } });
  });

  it('reports 503 at /readyz when conversions fail', async () => {
    await start({ MAGICK_BIN: await fakeMagick('exit 1'), RATE_LIMIT_PER_MINUTE: '1' });
    expect(await probe('/readyz')).to.deep.include({ status: 503, body: { status: 'failing' } });
  });
});
