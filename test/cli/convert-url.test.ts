// @full
import { truncateSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { createApiKey } from '../../src/files/api-keys.ts';
import { NOTES } from '../../src/tables/notes.ts';
import { edgeCase, fixture } from '../helpers/client.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { type Daemon, freePorts, startNginx } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { startService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { useServers } from '../helpers/stub-server.ts';
import { eventually } from '../helpers/util.ts';

describe('imagemill convert --url', () => {
  const folder = useConvertFolder();
  const servers = useServers();
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const stub = (answer: RequestListener): Promise<string> =>
    servers.stub((req, res) => answer(req, res.setHeader('content-type', 'image/webp')));
  /** Reads a request completely, and calls `then`. */
  const received =
    (then: RequestListener): RequestListener =>
    (req, res) =>
      void req.resume().once('end', () => then(req, res));

  it('prints the same lines and exit status, and creates the same bytes, as the tools of this machine', async () => {
    const service = await startService({ EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all' }); // as the tools of this machine
    closing.push(() => service.stop());
    await folder.put('scene.jpg', 'photos/a.jpg');
    await folder.put('moving.gif', 'photos/2024/b.gif');
    await folder.put('scene.png', 'photos/escape\u001b.png');
    await folder.write('photos/bad.png', await edgeCase('cut-in-header.png'));
    await folder.write('photos/text.jpg', 'no image');
    const flags = ['-f', 'jpg', '-q', '70', '--width', '60', '--background', '08f', '--jobs', '1'];
    const here = await folder.run(['photos', '-o', 'here', ...flags]);
    const there = await folder.run(['photos', '-o', 'there', ...flags, '--url', service.base]);
    const comparable = (lines: readonly string[]) =>
      lines.map((line) => line.replaceAll('there', 'here')).sort();
    expect(there.status).to.equal(1);
    expect(comparable(there.lines)).to.deep.equal(comparable(here.lines));
    expect(there.lines.join('\n')).to.include(NOTES['first-frame-only'].page);
    // Messages of servers call it "The file".
    const complaints = there.complaints.map((line) => line.replace(': The file ', ' '));
    expect(comparable(complaints)).to.deep.equal(comparable(here.complaints));
    expect(there.complaints.at(-1)).to.match(/2 of 5 files not converted: 1 .*damaged/);
    for (const name of ['a.jpg', '2024/b.jpg']) {
      const [one, other] = ['here', 'there'].map((place) => folder.read(join(place, name)));
      expect((await other)?.equals((await one) as Buffer), name).to.equal(true);
    }
  });

  it('waits for the time in Retry-After after 429 and 503, and uses another instance meanwhile', async () => {
    const result = await fixture('scene.webp');
    const counts = new Map<number, number>();
    const answering = (code: number, headers = {}) =>
      stub(
        received((_req, res) => {
          counts.set(code, (counts.get(code) ?? 0) + 1);
          const body = code === 200 ? result : '{"error":{"code":503,"message":"busy"}}';
          res.writeHead(code, headers).end(body);
        }),
      );
    const retryAfter = { 'retry-after': '3600' };
    const [limited, busy] = [await answering(429, retryAfter), await answering(503, retryAfter)];
    for (let at = 0; at < 10; at += 1) await folder.put('scene.jpg', `photos/${at}.jpg`);
    const urls = [limited, busy, await answering(200)].flatMap((url) => ['--url', url]);
    const { status, complaints } = await folder.run(['photos', '-o', 'out', '--jobs', '3', ...urls]);
    expect([status, ...[...complaints].sort()]).to.have.members([
      0,
      `imagemill: ${limited}/api/v1 responded with 429. A limit on requests of one client is reached, and it gets no files for 3600 s.`,
      `imagemill: ${busy}/api/v1 responded with 503. It is busy, and it gets no files for 3600 s.`,
    ]);
    expect(counts.get(200)).to.equal(10);
    for (const code of [429, 503]) expect(counts.get(code), 'not asked again').to.be.within(1, 3);
  });

  for (const [how, busyResponses, expected] of [
    ['at once, without an explanation, after a Retry-After of 0', 1, ['0', 2]],
    [
      'up to 20 times to a server that stays busy',
      Number.POSITIVE_INFINITY,
      ['1 imagemill: photo.jpg: URL/api/v1 is still busy after 20 requests: 503 busy.', 20],
    ],
  ] as const) {
    it(`sends a file again ${how}`, async () => {
      const result = await fixture('scene.webp');
      let requests = 0;
      const url = await stub(
        received((_req, res) => {
          requests += 1;
          if (requests > busyResponses) return res.end(result);
          return res.writeHead(503, { 'retry-after': '0' }).end('{"error":{"code":503,"message":"busy"}}');
        }),
      );
      await folder.put('scene.jpg', 'photo.jpg');
      const { outcome } = await folder.run(['photo.jpg', '-o', 'photo.webp', '--url', url]);
      expect([outcome.replaceAll(url, 'URL'), requests]).to.deep.equal(expected);
    });
  }

  it('sends what to keep of the metadata in the field that earlier versions know, if it has one', async () => {
    const result = await fixture('scene.webp');
    const sent: string[] = [];
    const url = await stub(async (req, res) => {
      const body = Buffer.concat(await req.toArray()).toString('latin1');
      const fields = [...body.matchAll(/name="(\w*metadata)"\r\n\r\n(\w+)/g)];
      if (req.method === 'POST') sent.push(fields.map(([, name, value]) => `${name}=${value}`).join());
      res.end(result);
    });
    await folder.put('scene.jpg', 'photo.jpg');
    const flags = ['', '--keep-metadata', '--metadata=ALL', '--metadata=none', '--metadata=copyright'];
    for (const flag of flags)
      await folder.run(['photo.jpg', '-o', 'out.webp', '--force', '--url', url, ...(flag ? [flag] : [])]);
    expect(sent).to.deep.equal([
      '',
      'strip_metadata=false',
      'strip_metadata=false',
      'strip_metadata=true',
      'metadata=copyright',
    ]);
  });

  it('names the file in each message, and groups failures by reason, or by the status of a proxy', async () => {
    const answers = new Map([
      [
        'a.jpg',
        [415, '{"error":{"code":415,"message":"The file is no image.","reason":"unsupported_type"}}'],
      ],
      ['b.jpg', [500, '{"error":{"code":500,"message":"An internal error occurred."}}']],
      ['c.jpg', [413, '<html>413 Request Entity Too Large</html>']],
      ['d.jpg', [413, '']],
      ['e.jpg', [403, '{"error":"Forbidden"}']],
    ] as const);
    const url = await stub(async (req, res) => {
      const form = Buffer.concat(await req.toArray()).toString('latin1');
      const name = /filename="([^"]+)"/.exec(form)?.[1] as 'a.jpg';
      const [status, body] = answers.get(name) as [number, string];
      res.writeHead(status).end(body);
    });
    for (const name of answers.keys()) await folder.put('scene.jpg', `photos/${name}`);
    const args = ['photos', '-o', 'out', '--jobs', '1', '--url', url];
    const proxy = 'The server responded with status 403, and without a message of imagemill.';
    const size = (await fixture('scene.jpg')).length;
    const tooLarge = `A proxy in front of the server refused ${Math.ceil(size / 1000)} kB. Send less, or raise its limit (nginx: client_max_body_size).`;
    const text = await folder.run(args);
    expect([text.status, ...text.complaints]).to.deep.equal([
      1,
      'imagemill: photos/a.jpg: The file is no image.',
      'imagemill: photos/b.jpg: An internal error occurred.',
      `imagemill: photos/c.jpg: ${tooLarge}`,
      `imagemill: photos/d.jpg: ${tooLarge}`,
      `imagemill: photos/e.jpg: ${proxy}`,
      'imagemill: 5 of 5 files not converted: 2 too large for a proxy, 1 HTTP 403, 1 HTTP 500, 1 of an unsupported type.',
    ]);
    const { objects, summary } = await folder.run([...args, '--json', '--report', 'report.csv']);
    const code = 'PROXY_413';
    expect(objects()[2].error).to.deep.equal({ code, message: `photos/c.jpg: ${tooLarge}` });
    const failed = { UNSUPPORTED_TYPE: 1, HTTP_500: 1, [code]: 2, HTTP_403: 1 };
    expect(summary().failed).to.deep.equal(failed);
    expect(await folder.text('report.csv')).to.include(
      `photos/c.jpg,,failed,,,,,PROXY_413,"photos/c.jpg: ${tooLarge}"`,
    );
  });

  it('sends as many concurrent requests as --jobs allows, over connections that stay open', async () => {
    const result = await fixture('scene.webp');
    const ports = new Set<number | undefined>();
    const waiting: (() => void)[] = [];
    let most = 0;
    const url = await stub(
      received((req, res) => {
        ports.add(req.socket.remotePort);
        waiting.push(() => res.end(result));
        most = Math.max(most, waiting.length);
        // Answer when as many requests as allowed have arrived; the last ones when no more can
        // arrive.
        if (waiting.length === 3) for (const answer of waiting.splice(0)) answer();
      }),
    );
    for (let at = 0; at < 30; at += 1) await folder.put('scene.jpg', `photos/${at}.jpg`);
    const { status } = await folder.run(['photos', '-o', 'out', '--jobs', '3', '--url', url]);
    expect([status, most]).to.deep.equal([0, 3]);
    expect(ports.size).to.be.at.most(6);
  });

  it('repeats a conversion whose response was truncated, and writes no incomplete result', async () => {
    const result = await fixture('scene.webp');
    let count = 0;
    const url = await stub(
      received((_req, res) => {
        count += 1;
        res.writeHead(200, { 'content-length': result.length });
        if (count > 1) res.end(result);
        else res.write(result.subarray(0, 100), () => res.destroy());
      }),
    );
    await folder.put('scene.jpg', 'photos/a.jpg');
    const { status } = await folder.run(['photos', '-o', 'out', '--url', url]);
    expect([status, count]).to.deep.equal([0, 2]);
    expect((await folder.read('out/a.webp')).equals(result)).to.equal(true);
  });

  it('stops the download of a result that exceeds half of the free space of TEMP_DIR', async function () {
    requires(this, 'mounts', process.getuid?.() === 0);
    let chunks = 0;
    async function* body() {
      for (; chunks < 1000; chunks += 1) yield Buffer.alloc(100_000);
    }
    const url = await stub(received((_, res) => void Readable.from(body()).pipe(res)));
    await folder.put('scene.jpg', 'photos/a.jpg');
    const mount = 'mkdir $TEMP_DIR && mount -t tmpfs -o size=10m none $TEMP_DIR && exec "$@"';
    const launcher = ['unshare', '-m', 'sh', '-c', mount, 'sh'];
    const { outcome } = await folder.runProcess(['photos', '-o', 'out', '--url', url], { launcher });
    expect(outcome).to.match(/^1 imagemill: photos\/a\.jpg: The result has more than 5\d{6} bytes\./);
    expect(chunks).to.be.below(500);
  });

  it('sends the API key of IMAGEMILL_API_KEY, and says what is wrong without it', async () => {
    const { line, key } = createApiKey('bulk') as { readonly line: string; readonly key: string };
    const keys = folder.file('keys');
    await writeFile(keys, line);
    const service = await startService({ API_KEYS_FILE: keys, REQUIRE_API_KEY: 'on' });
    closing.push(() => service.stop());
    await folder.put('scene.jpg', 'photos/a.jpg');
    const run = (IMAGEMILL_API_KEY?: string) =>
      folder.run(['photos', '-o', 'out', '--url', service.base], { env: { IMAGEMILL_API_KEY } });
    const said = `imagemill: no imagemill server responds at ${service.base}: it`;
    const without = await run();
    expect(without.outcome).to.equal(`2 ${said} needs the API key in IMAGEMILL_API_KEY`);
    const wrong = await run('wrong');
    expect(wrong.outcome).to.equal(`2 ${said} does not accept the API key in IMAGEMILL_API_KEY`);
    expect(await run(key)).to.include({ status: 0 });
    expect(await folder.files('out')).to.deep.equal(['a.webp']);
  });

  for (const [how, bytes] of [
    ['longer', 21_000_000],
    ['shorter', 10],
  ] as const) {
    it(`reports a source that becomes ${how} while it is sent, and converts the others`, async () => {
      const result = await fixture('scene.webp');
      const changing = folder.file('photos/changing.jpg');
      const url = await stub((req, res) => {
        // The request has arrived with its first bytes: the client reads the rest of the file from
        // now on.
        truncateSync(changing, bytes);
        received((_req, answer) => answer.setHeader('content-type', 'image/webp').end(result))(req, res);
      });
      await folder.put('scene.jpg', 'photos/same.jpg');
      await writeFile(changing, Buffer.alloc(20_000_000, await fixture('scene.jpg')));
      const options = ['--update', '--jobs', '1', '--url', url];
      const { status, complaints } = await folder.runProcess(['photos', '-o', 'out', ...options]);
      expect([status, ...complaints]).to.deep.equal([
        1,
        'imagemill: photos/changing.jpg changed while it was read. Convert it again when it is complete.',
        'imagemill: 1 of 2 files not converted: 1 changed while read.',
      ]);
      expect(await folder.files('out')).to.deep.equal(['same.jpg.webp']);
    });
  }

  it('loses nothing and writes nothing twice while two of three instances behind nginx restart', async () => {
    const [nginxPort = 0, ...ports] = await freePorts(4);
    const { env, setLimit } = await folder.limitedTool(20);
    const start = async (port: number): Promise<ServiceProcess> => {
      const own = { PORT: String(port), TEMP_DIR: await makeTempDir('instance') };
      const instance = startProcess({ ...own, TRUST_PROXY: '1', CONCURRENCY: '1', ...env });
      closing.push(async () => {
        instance.child.kill('SIGKILL');
        await instance.ended();
      });
      await instance.base();
      return instance;
    };
    const instances: ServiceProcess[] = [];
    for (const port of ports) instances.push(await start(port));
    const nginx: Daemon = await startNginx(
      nginxPort,
      `upstream imagemill { ${ports.map((port) => `server 127.0.0.1:${port} max_fails=0;`).join(' ')} keepalive 8; }
      server { listen 127.0.0.1:${nginxPort}; client_max_body_size 11m; location / {
        proxy_pass http://imagemill; proxy_http_version 1.1; proxy_set_header Connection '';
        proxy_next_upstream error timeout http_502 http_503 non_idempotent; } }`,
    );
    closing.push(() => nginx.stop());
    const count = 60;
    for (let at = 0; at < count; at += 1) await folder.put('scene.jpg', `photos/${at}.jpg`);
    const { objects, outcome } = await folder.runProcess(
      ['photos', '-o', 'out', '--update', '--json', '--jobs', '4', '--url', `http://127.0.0.1:${nginxPort}`],
      {
        async meanwhile() {
          for (const at of [0, 1]) {
            await eventually(async () => (await folder.results()).length > 10 + 20 * at);
            const old = instances[at] as ServiceProcess;
            old.child.kill('SIGTERM');
            await setLimit(40 + 20 * at);
            expect(await old.ended()).to.equal(0);
            await start(ports[at] as number);
          }
        },
      },
    );
    expect(outcome).to.equal('0');
    const outputs = objects().flatMap(({ output }) => output ?? []);
    expect(outputs).to.have.length(count);
    expect(new Set(outputs).size, 'each result once').to.equal(count);
    const bytes = await folder.read('out/0.jpg.webp');
    for (const name of await folder.files('out'))
      expect((await folder.read(join('out', name))).equals(bytes), name).to.equal(true);
  });
});
