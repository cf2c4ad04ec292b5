import { expect } from 'chai';
import { ask, fixture } from './helpers/client.ts';
import { useOwnServices } from './helpers/service.ts';

describe('a setting of the app', () => {
  const { start, current } = useOwnServices();
  const allowedFor = async (origin: string) =>
    (await ask(`${current().base}/health`, { headers: { origin } })).headers.get(
      'access-control-allow-origin',
    );

  it('CORS_ORIGIN as a list lets the pages of those sites read the answers, and no others', async () => {
    await start({ CORS_ORIGIN: 'https://a.example,https://b.example' });
    expect(await allowedFor('https://b.example')).to.equal('https://b.example');
    expect(await allowedFor('https://c.example')).to.equal(null);
  });

  it('CORS_ORIGIN=off lets none', async () => {
    await start({ CORS_ORIGIN: 'off' });
    expect(await allowedFor('https://a.example')).to.equal(null);
  });

  it('MAX_FILE_BYTES and MAX_BATCH_FILES move the limits, and the messages say where they are', async () => {
    await start({ MAX_FILE_BYTES: '4000', MAX_BATCH_FILES: '2' });
    const photo = new Uint8Array(await fixture('scene.jpg'));
    const send = async (...files: Uint8Array<ArrayBuffer>[]) => {
      const body = new FormData();
      for (const file of files) body.append('files', new Blob([file]), 'a.jpg');
      const { status, message } = await ask(`${current().base}/batch`, { method: 'POST', body });
      return `${status} ${message}`;
    };
    expect(await send(photo, photo)).to.equal('200 ');
    expect(await send(photo, photo, photo)).to.equal('400 Too many files: at most 2 allowed in one request.');
    const longer = new Uint8Array(4001);
    longer.set(photo);
    expect(await send(longer)).to.equal('413 File 1 ("a.jpg") is too large: at most 4000 bytes allowed.');
  });
});
