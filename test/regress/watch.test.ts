/** @module Tests of `imagemill regress watch`, and of `docker/upgrade-check.sh` with a stand-in for Docker. */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { MAIN, runCommand, runOnTerminal } from '../helpers/command.ts';
import { runCliInProcess } from '../helpers/command-line.ts';
import { otherFilter, patchedMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { useServers } from '../helpers/stub-server.ts';
import { eventually, writeScript } from '../helpers/util.ts';

const MATRIX = {
  cases: [
    { name: 'png', format: 'png' },
    { name: 'small', format: 'png', width: 70 },
  ],
};

describe('imagemill regress watch', () => {
  let images: string;
  let matrix: string;
  /** The service in use, one with the same settings, one with another filter, and one that rejects larger files. */
  let services: OwnService[];
  let urls: { present: string; same: string; other: string; strict: string };
  before(async () => {
    const folder = await makeTempDir('watch');
    [images, matrix] = [join(folder, 'images'), join(folder, 'matrix.json')];
    await mkdir(join(images, 'photos'), { recursive: true });
    await copyFile(fixturePath('scene.png'), join(images, 'scene.png'));
    await copyFile(fixturePath('p3.jpg'), join(images, 'photos', 'p3.jpg'));
    await writeFile(join(images, 'torn.gif'), Buffer.from('GIF89a\x20\0\x20\0', 'latin1'));
    await writeFile(matrix, JSON.stringify(MATRIX));
    const MAGICK_BIN = await patchedMagick(otherFilter('Triangle'));
    services = [
      await startService(),
      await startService(),
      await startService({ MAGICK_BIN }),
      await startService({ MAX_FILE_BYTES: '100' }),
    ];
    const [present = '', same = '', other = '', strict = ''] = services.map(({ base }) => base);
    urls = { present, same, other, strict };
  });
  after(() => Promise.all(services.map((service) => service.stop())));

  const words = (source: string, service: string, candidate: string, ...more: string[]) => [
    ...['regress', 'watch', source, '--service', service, '--candidate', candidate, '--matrix', matrix],
    ...more,
  ];

  /** Runs the command with `--json`. Returns the changed results and the summary. */
  async function watch(service: string, candidate: string, ...more: string[]) {
    const { status, stdout, stderr } = await runCliInProcess(
      words(images, service, candidate, '--json', ...more),
    );
    const lines = stdout.split('\n').map((line) => JSON.parse(line));
    const { summary } = lines.pop();
    const changed = lines.map(({ verdict, image, case: name }) => `${verdict} ${image} ${name}`).sort();
    return { status, stderr, changed, summary };
  }

  it('exits with 0 if two servers convert and reject alike, and states the numbers and servers', async () => {
    const { status, changed, summary } = await watch(urls.present, urls.same, '--min', '2');
    expect([status, changed]).to.deep.equal([0, []]);
    const { verdicts, service, candidate, ...rest } = summary;
    expect(rest).to.deep.equal({
      holds: true,
      converted: 2,
      files: 3,
      changed: 0,
      rejected: 1,
      unreadable: 0,
      min: 2,
      maxChanged: 0,
    });
    expect(verdicts).to.include({ identical: 3, changed: 0 });
    expect([service.server, candidate.server]).to.deep.equal([urls.present, urls.same]);
  });

  it('exits with 1 and names each changed result, and with 0 if so many may change', async () => {
    const { status, changed, summary } = await watch(urls.present, urls.other);
    expect(changed).to.deep.equal(['changed photos/p3.jpg small', 'changed scene.png small']);
    expect([status, summary.changed, summary.holds]).to.deep.equal([1, 2, false]);
    expect((await watch(urls.present, urls.other, '--max-changed', '1')).status).to.equal(1);
    expect((await watch(urls.present, urls.other, '--max-changed', '2')).status).to.equal(0);
  });

  it('counts files that only one of the servers rejects as changed', async () => {
    const worse = await watch(urls.present, urls.strict);
    expect([worse.status, worse.summary.changed]).to.deep.equal([1, 2]);
    expect(worse.changed.map((line) => line.split(' ')[0])).to.deep.equal(Array(4).fill('broken'));
    const better = await watch(urls.strict, urls.present);
    expect([better.status, better.summary.changed]).to.deep.equal([1, 2]);
    expect(better.changed.map((line) => line.split(' ')[0])).to.deep.equal(Array(4).fill('fixed'));
  });

  it('does not hold if there are fewer files than --min, without those that both servers reject', async () => {
    expect((await watch(urls.present, urls.same, '--min', '3')).status).to.equal(1);
    const { status, summary } = await watch(urls.strict, urls.strict);
    expect([status, summary.converted, summary.rejected, summary.changed]).to.deep.equal([1, 0, 3, 0]);
    expect(summary.verdicts.identical).to.equal(3);
  });

  it('reads paths from standard input, names those that cannot be read, and prints a summary', async () => {
    const { status, lines, complaints } = await runCommand(words('-', urls.present, urls.other), {
      cwd: images,
      input: Buffer.from('scene.png\n\n../images/photos/p3.jpg\nmissing.jpg\n'),
    });
    expect(status).to.equal(1);
    expect(complaints).to.deep.equal(['imagemill: missing.jpg: no such file or folder.']);
    const changed = lines.filter((line) => line.startsWith('changed'));
    expect(changed.map((line) => line.slice(0, line.indexOf(':'))).sort()).to.deep.equal([
      `changed    small  ${images}/photos/p3.jpg`,
      `changed    small  ${images}/scene.png`,
    ]);
    expect(lines.slice(2).join('\n')).to.match(
      /^before: server http.*\nafter: {2}server http.*\n2 files:\n +2 changed {4}exceeds a threshold\n1 file not readable\nThe gate does not hold: 2 converted, minimum 1; 2 changed, maximum 0\.$/,
    );
  });

  it('shows a bar with the number of changed files on a terminal', async () => {
    const line = [process.execPath, MAIN, ...words(images, urls.present, urls.other)].join(' ');
    const { status, shown } = await runOnTerminal(line, images);
    expect(status).to.equal(1);
    expect(shown).to.match(/█ 3\/3 2 changed/);
  });

  it('exits with 2 for wrong arguments, and if a server does not respond', async () => {
    const unused = 'http://127.0.0.1:1';
    for (const [args, message] of [
      [['regress', 'watch', images, '--service', urls.present], /required option '--candidate <url>'/],
      [words(images, urls.present, urls.same, '--min', 'ten'), /--min ten: expected a whole number/],
      [words(images, urls.present, urls.same, '--max-changed', '-1'), /--max-changed -1: expected a whole/],
      [words(join(images, 'missing'), urls.present, urls.same), /missing is not a folder\./],
      [words(join(images, 'scene.png'), urls.present, urls.same), /scene\.png is not a folder\./],
      [words(images, urls.present, urls.same, '--matrix', images), /cannot be read: /],
      [words(images, urls.present, unused), /no imagemill server responds at http:\/\/127\.0\.0\.1:1/],
    ] as const) {
      const { status, stdout, stderr } = await runCliInProcess(args);
      expect(stderr, args.join(' ')).to.match(message);
      expect([status, stdout], args.join(' ')).to.deep.equal([2, '']);
    }
  });

  describe('with a server that ends or does not answer', () => {
    const { stub } = useServers();
    let url: string;
    let requests: number;
    let onConvert: (request: IncomingMessage) => void;
    beforeEach(async () => {
      requests = 0;
      url = await stub((req) => {
        requests += 1;
        return onConvert(req);
      });
    });

    it('exits with 2 although standard input is open, and leaves no files', async () => {
      onConvert = (request) => request.destroy();
      const TMPDIR = await makeTempDir('ended');
      // The command itself holds the writing end of its standard input, so that it never ends.
      const open = 'mkfifo "$0" && exec 3<>"$0" && echo scene.png >&3 && exec "$@" <&3';
      const launcher = ['sh', '-c', open, join(await makeTempDir('input'), 'paths')];
      const args = words('-', urls.present, url);
      const { status, complaints } = await runCommand(args, { cwd: images, env: { TMPDIR }, launcher });
      expect(complaints.join()).to.match(/^imagemill: scene\.png: http.* no longer responds: /);
      expect(status).to.equal(2);
      expect(await readdir(TMPDIR)).to.deep.equal([]);
    });

    it('exits with 143 on SIGTERM, and leaves no files', async () => {
      onConvert = (request) => request.resume();
      const TMPDIR = await makeTempDir('stopped');
      const { status, lines, complaints } = await runCommand(words(images, urls.present, url), {
        env: { TMPDIR },
        async meanwhile(pid) {
          await eventually(() => requests > 0);
          process.kill(pid, 'SIGTERM');
        },
      });
      expect([status, lines, complaints]).to.deep.equal([143, [], []]);
      expect(await readdir(TMPDIR)).to.deep.equal([]);
    });
  });

  describe('docker/upgrade-check.sh', () => {
    const SCRIPT = new URL('../../docker/upgrade-check.sh', import.meta.url).pathname;

    /** Runs the script with a `docker` that keeps a log, and compares two local services instead of containers. */
    async function check(candidate: string, health = 'healthy', settings: Record<string, string> = {}) {
      const folder = await makeTempDir('docker');
      const log = join(folder, 'log');
      await writeScript(
        'docker',
        `echo "$*" >> ${log}
case "$1 $2" in
  inspect*) echo ${health} ;;
  'run --rm')
    while [ "$1" != regress ]; do shift; done
    for word in "$@"; do
      shift
      case "$word" in
        http://present:3000) word=${urls.present} ;;
        http://candidate:3000) word=${candidate} ;;
        /images) word=${images} ;;
      esac
      set -- "$@" "$word"
    done
    exec ${process.execPath} ${MAIN} "$@" --matrix ${matrix} ;;
esac`,
        folder,
      );
      const env = { ...settings, PATH: `${folder}:${process.env.PATH}`, PRESENT: 'mill:1' };
      const run = await runCommand([], {
        env,
        launcher: ['sh', '-c', `exec sh ${SCRIPT} "$0" --min 2`, images],
      });
      const calls = (await readFile(log, 'utf8')).trim().split('\n');
      return { ...run, calls, tags: calls.filter((call) => call.startsWith('tag ')) };
    }

    it('builds an image, and gives it the name of the present one if the results are equal', async () => {
      const { status, calls, tags, complaints } = await check(urls.same);
      expect(status, complaints.join('\n')).to.equal(0);
      expect(calls[0]).to.match(/^build --pull --no-cache .* --tag imagemill:candidate \.$/);
      expect(tags).to.deep.equal(['tag mill:1 mill:1-before', 'tag imagemill:candidate mill:1']);
    });

    it('changes no name if a result changed, and removes what it has started', async () => {
      const { status, calls, tags, complaints } = await check(urls.other, 'healthy', { CANDIDATE: 'mill:2' });
      expect([status, tags]).to.deep.equal([1, []]);
      expect(complaints).to.deep.equal(['imagemill: mill:2 does not replace mill:1']);
      expect(calls[0]).to.match(/^network create --internal imagemill-upgrade-\d+$/);
      const network = calls[0]?.split(' ').at(-1);
      expect(calls.slice(-2)).to.deep.equal([
        `rm --force --volumes ${network}-present ${network}-candidate`,
        `network rm ${network}`,
      ]);
      expect(
        calls.filter((call) => call.startsWith('run --detach')).map((call) => call.split(' ').at(-1)),
      ).to.deep.equal(['mill:1', 'mill:2']);
    });

    it('exits with 2 and changes no name if a server is not healthy or does not respond', async () => {
      const ill = await check(urls.same, 'unhealthy');
      expect([ill.status, ill.tags]).to.deep.equal([2, []]);
      expect(ill.complaints).to.deep.equal(['imagemill: the server of the present image is not healthy']);
      const gone = await check('http://127.0.0.1:1');
      expect([gone.status, gone.tags]).to.deep.equal([2, []]);
      expect(gone.complaints.at(-1)).to.equal('imagemill: the comparison ended with status 2');
    });
  });
});
