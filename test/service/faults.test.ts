// @full
import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { bmp } from '../../scripts/fixtures/bmp-writer.ts';
import {
  conversionsWaiting,
  convert,
  edgeCase,
  fixture,
  fixturePath,
  jsonOf,
  sendForm,
} from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick, gatedMagick, NOT_ALLOWED, printMessage } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { dial, formBody, formHead, readAll } from '../helpers/raw-http.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually, isRunning, numberIn } from '../helpers/util.ts';

describe('POST /convert with failures', () => {
  const { start, startShared, current, openRequests, nothingLeft } = useOwnServices();
  let photo: Buffer;
  /**
   * Path of what the tool runs for a conversion. Each test writes its own, so that the tests share
   * a service.
   */
  let script: string;
  let MAGICK_BIN: string;
  before(async () => {
    photo = await fixture('scene.jpg');
    script = join(await makeTempDir('tool'), 'script');
    MAGICK_BIN = await fakeMagick(`. ${script}`);
  });
  const startWithTool = async (body: string): Promise<void> => {
    await writeFile(script, body);
    await startShared({ MAGICK_BIN });
  };

  describe('of the tool', () => {
    it('returns 413 with the limit and its setting, and kills the process when a tool hangs', async () => {
      const pidFile = join(await makeTempDir('pid'), 'pid');
      await start({
        MAGICK_BIN: await fakeMagick(`trap '' TERM; echo $$ > ${pidFile}; sleep 60`),
        CONVERT_TIMEOUT_MS: '1000',
      });
      const pid = await eventually(async () => {
        const { headers, outcome } = await convert(current().base, photo);
        expect(outcome).to.equal(
          '413 The file took longer to convert than the limit of 1 second (CONVERT_TIMEOUT_MS).',
        );
        expect(headers.get('retry-after')).to.equal(null);
        // On a busy machine, the tool may not start before its time limit.
        return Number(await readFile(pidFile, 'utf8').catch(() => '')) || undefined;
      });
      await eventually(() => !isRunning(pid));
      expect(await openRequests()).to.deep.equal([]);
    });

    it('returns 413 with the limit of the setting if decoding in the service takes too long', async () => {
      await start({ CONVERT_TIMEOUT_MS: '40' });
      const row = [...Array(27).fill([255, 1]).flat(), 0, 0]; // 27 runs of 255 pixels, and the end of the row
      const pixels = Buffer.concat(Array(6000).fill(Buffer.from(row)));
      const palette = Array.from({ length: 256 }, (_, at) => [at, at, at]);
      const file = bmp({ width: 27 * 255, height: 6000, bits: 8, compression: 1, palette, pixels });
      expect((await convert(current().base, file)).outcome).to.equal(
        '413 The file took longer to convert than the limit of 0.04 seconds (CONVERT_TIMEOUT_MS).',
      );
    });

    it('returns 503 without details of the machine while the tool is missing, and converts once it is back', async () => {
      const path = await fakeMagick(COPY_SCENE);
      await start({ MAGICK_BIN: path });
      await rename(path, `${path}.away`);
      const { headers, outcome } = await convert(current().base, photo);
      expect(outcome).to.equal('503 The service cannot convert images at the moment. Try again shortly.');
      expect(Number(headers.get('retry-after'))).to.be.above(0);
      const causes = current()
        .logged.filter(({ level }) => level === 50)
        .map(({ err }) => JSON.stringify(err));
      expect(causes).to.have.length(1);
      expect(causes[0]).to.include(path);
      await rename(`${path}.away`, path);
      expect((await convert(current().base, photo)).status).to.equal(200);
    });

    it('returns 500 with the support address and the request ID for an unexpected failure', async () => {
      const refused = `${printMessage(NOT_ALLOWED)}; exit 1`;
      await start({ MAGICK_BIN: await fakeMagick(refused), SUPPORT_EMAIL: 'help@example.com' });
      const { headers, outcome } = await convert(current().base, photo);
      expect(outcome).to.equal(
        `500 An internal error occurred. If it persists, contact help@example.com and quote request ${headers.get('x-request-id')}.`,
      );
    });

    for (const [what, body] of [
      ['fails', 'echo "corrupt image /etc/secret" >&2; exit 1'],
      ['crashes', 'kill -SEGV $$'],
      ['fails and leaves a partial file', 'echo half > image.webp; exit 1'],
      ['exits with 0 and leaves no file', 'exit 0'],
      ['exits with 0 and leaves an empty file', ': > image.webp'],
      ['exits with 0 and leaves another format', 'echo GIF89a > image.webp'],
      ['exits with 0 and leaves two files', 'echo x > image-0.webp; echo x > image-1.webp'],
      ['exits with 0 and leaves a symbolic link', `ln -s ${fixturePath('scene.webp')} image.webp`],
      ['exits with 0 and leaves a hard link', `cp ${fixturePath('scene.webp')} other; ln other image.webp`],
      ['exits with 0 and leaves a pipe', 'mkfifo image.webp'],
      ['exits with 0 and leaves a folder', 'mkdir image.webp; echo > image.webp/x'],
      [
        'exits with 0 and leaves an additional file',
        'printf "RIFF....WEBP" > image.webp; echo x > image.webp~',
      ],
    ] as const) {
      it(`returns 400 and logs the cause when the tool ${what}`, async () => {
        await startWithTool(body);
        expect((await convert(current().base, photo)).outcome).to.equal(
          '400 The file is damaged or not a valid JPEG image.',
        );
        expect(
          current().logged.some(({ code, err }) => code === 'CORRUPT_IMAGE' && err !== undefined),
        ).to.equal(true);
      });
    }

    it('rejects the result of a tool that exits with 0 after a policy error', async () => {
      const real = fixturePath('scene.webp');
      await startWithTool(`${printMessage(NOT_ALLOWED)}; cp ${real} image.webp`);
      expect((await convert(current().base, photo)).status).to.equal(500);
    });

    it('retries without the colour profile when the tool rejects it', async () => {
      const real = fixturePath('scene.webp');
      const mismatch = printMessage(
        "ColorspaceColorProfileMismatch `icc' @ error/profile.c/ProfileImage/935.",
      );
      const body = `case "$*" in *-intent*) ${mismatch}; exit 1 ;; *) cp ${real} image.webp ;; esac`;
      await startWithTool(body);
      const { status, notes } = await convert(current().base, await edgeCase('p3-tagged.jpg'));
      expect([status, notes]).to.deep.equal([200, null]);
    });

    it('rejects files that ImageMagick 6 would convert wrongly without its helper programs', async () => {
      await start({ MAGICK_BIN: await fakeMagick('exit 1', '6.9.11-60'), PATH: '/nonexistent' });
      expect((await convert(current().base, await fixture('moving.gif'))).outcome).to.equal(
        '415 The file is a kind of GIF that cannot be converted to WebP on this machine.',
      );
      expect((await convert(current().base, await fixture('scene.avif'))).message).to.not.include('AVIF');
      const warnings = current()
        .logged.filter(({ level }) => level === 40)
        .map(({ msg }) => String(msg));
      expect(warnings.join()).to.include('apt install webp').and.include('apt install libheif-examples');
    });

    it('serves the result of a tool that prints warnings', async () => {
      const real = fixturePath('scene.webp');
      await startWithTool(`echo "warning" >&2; cp ${real} image.webp`);
      const { status, body } = await convert(current().base, photo);
      expect([status, body.equals(await fixture('scene.webp'))]).to.deep.equal([200, true]);
    });
  });

  it('returns 503 with Retry-After when the queue is full, and converts what was queued', async () => {
    const { MAGICK_BIN, started, open } = await gatedMagick();
    await start({ MAGICK_BIN, CONCURRENCY: '1', QUEUE_LIMIT: '1' });
    const running = convert(current().base, photo);
    await started();
    const waiting = convert(current().base, photo);
    await eventually(async () => (await conversionsWaiting(current().base)) === 1);
    const refused = await convert(current().base, photo);
    expect([refused.status, refused.message, refused.headers.get('retry-after')]).to.deep.equal([
      503,
      'The service is busy: too many conversions are waiting. Try again shortly.',
      '5',
    ]);
    expect(jsonOf(refused).error).to.include({ reason: 'queue_full', retryable: true });
    await open();
    expect([(await running).status, (await waiting).status]).to.deep.equal([200, 200]);
  });

  describe('of a client that disconnects', () => {
    const body = () => formBody(photo);

    it('leaves no files and logs no warning after a disconnect during the upload', async () => {
      await startShared({});
      const before = current().logged.length;
      const socket = await dial(current().base);
      socket.write(formHead(1_000_000));
      socket.write(body().subarray(0, 1000));
      await eventually(async () => (await openRequests()).length === 1);
      socket.destroy();
      await nothingLeft();
      expect(
        current()
          .logged.slice(before)
          .filter(({ level }) => Number(level) >= 40),
      ).to.deep.equal([]);
    });

    it('kills the process and leaves no files after a disconnect during the conversion', async () => {
      const pidFile = join(await makeTempDir('pid'), 'pid');
      await startWithTool(`trap '' TERM; echo $$ > ${pidFile}; sleep 60`);
      const socket = await dial(current().base);
      socket.write(formHead(body().length));
      socket.write(body());
      const pid = await eventually(() => numberIn(pidFile));
      expect(isRunning(pid)).to.equal(true);
      socket.destroy();
      await eventually(() => !isRunning(pid));
      await nothingLeft();
    });

    it('leaves no files after a disconnect during the download', async () => {
      const large = `head -c 15000000 /dev/zero >> image.webp`;
      await startWithTool(`${COPY_SCENE}; ${large}`);
      const socket = await dial(current().base);
      socket.write(formHead(body().length));
      socket.write(body());
      await once(socket, 'readable'); // nothing is read, so that the response cannot end
      expect(await openRequests()).to.have.length(1);
      socket.destroy();
      await nothingLeft();
    });
  });

  describe('with an invalid first part and a valid part in the same chunk', () => {
    const good = () => formBody(Buffer.concat([photo, Buffer.alloc(300_000)]));
    for (const [what, wrong] of [
      [
        'a file under another field name',
        '--xyz\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\nx\r\n',
      ],
      ['too many fields', '--xyz\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'.repeat(150)],
      ['a malformed header', '--xyz\r\nContent-Disposition: form-data; name="\0"\r\n\r\nx\r\n'],
    ] as const) {
      it(`returns 400 and leaves no files: ${what}`, async () => {
        await startShared({});
        const init = {
          method: 'POST',
          headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
          body: Buffer.concat([Buffer.from(wrong), good()]),
        };
        expect((await sendForm(`${current().base}/convert`, init)).status).to.equal(400);
        expect(await openRequests()).to.deep.equal([]);
      });
    }
  });

  it('ignores an unknown value of Expect', async () => {
    await startShared({});
    const socket = await dial(current().base);
    socket.write('GET /api/v1/health HTTP/1.1\r\nHost: x\r\nExpect: magic\r\nConnection: close\r\n\r\n');
    expect(await readAll(socket)).to.match(/^HTTP\/1\.1 200 /);
  });
});
