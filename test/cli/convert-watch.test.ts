// @full
import { appendFile, mkdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import { createWatcher } from '../../src/cli/convert/watch.ts';
import { fixture, fixturePath } from '../helpers/client.ts';
import type { CommandRun } from '../helpers/command.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { eventually } from '../helpers/util.ts';

describe('imagemill convert --watch', () => {
  const folder = useConvertFolder();
  let env: Record<string, string>;
  beforeEach(async () => {
    // The result contains the source, so that the test sees whether it was complete.
    const magick = await fakeMagick(`cat ${fixturePath('scene.webp')} in > image.webp`);
    env = { MAGICK_BIN: magick, SANDBOX: 'off' };
  });
  /** Runs the command, acts once it has converted photos/first.jpg, and ends it with SIGINT. */
  const watching = async (act: (printed: () => string) => Promise<void>): Promise<CommandRun> => {
    await folder.put('scene.jpg', 'photos/first.jpg');
    return folder.runProcess(['photos', '-o', 'out', '--watch', '--json'], {
      env,
      async meanwhile(pid, printed) {
        try {
          await resultOf('first.jpg.webp');
          await act(printed);
        } finally {
          process.kill(pid, 'SIGINT');
        }
      },
    });
  };
  const resultOf = (name: string): Promise<Buffer> =>
    eventually(() => folder.read(join('out', name)).catch(() => undefined));
  const inputsOf = ({ objects }: CommandRun): string[] => objects().flatMap(({ input }) => input ?? []);

  it('converts files that arrive, in new folders too, and files that change or were incomplete', async () => {
    const bytes = await fixture('scene.png');
    const ended = await watching(async () => {
      await folder.write('photos/slow.png', bytes.subarray(0, 500));
      await folder.put('scene.jpg', 'photos/2024/may/second.jpg');
      await resultOf('slow.png.webp');
      await resultOf('2024/may/second.jpg.webp');
      await folder.put('scene.jpg', 'photos/2024/may/third.jpg');
      await folder.write('photos/slow.png', bytes);
      await resultOf('2024/may/third.jpg.webp');
      await eventually(async () => (await resultOf('slow.png.webp')).subarray(-bytes.length).equals(bytes));
      await rm(folder.file('photos/2024/may'), { recursive: true });
      await folder.put('scene.png', 'photos/2024/may/fourth.png');
      await resultOf('2024/may/fourth.png.webp');
      await folder.put('scene.png', 'photos/2024/may/fifth.png');
      await resultOf('2024/may/fifth.png.webp');
    });
    expect(ended.outcome).to.equal('130');
    expect(inputsOf(ended).sort()).to.deep.equal([
      ...['fifth.png', 'fourth.png', 'second.jpg', 'third.jpg'].map((name) => `photos/2024/may/${name}`),
      'photos/first.jpg',
      'photos/slow.png',
      'photos/slow.png',
    ]);
  });

  it('reports failed files and up-to-date results once, and tries a file again when it has changed', async () => {
    await folder.put('scene.jpg', 'photos/old.jpg');
    // Complete in the first search, as it has not changed in the last two seconds.
    await utimes(folder.file('photos/old.jpg'), 1, 1);
    await folder.run(['photos', '-o', 'out', '--update'], { env });
    const ended = await watching(async (printed) => {
      await folder.write('photos/bad.png', 'no image');
      await eventually(() => printed().includes('"error"'));
      await folder.put('scene.jpg', 'photos/later.jpg'); // a later search, which must not report the files again
      await resultOf('later.jpg.webp');
      await folder.write('photos/bad.png', await fixture('scene.png'));
      await resultOf('bad.png.webp');
    });
    const codes = ended.objects().flatMap(({ error }) => error?.code ?? []);
    expect(codes).to.deep.equal(['UNSUPPORTED_TYPE']);
    expect(ended.summary()).to.include({ converted: 3, upToDate: 1 });
  });

  it('starts in an empty folder', async () => {
    await mkdir(folder.file('photos'));
    const { outcome } = await folder.runProcess(['photos', '-o', 'out', '--watch'], {
      env,
      async meanwhile(pid) {
        await folder.put('scene.jpg', 'photos/first.jpg');
        await resultOf('first.jpg.webp');
        process.kill(pid, 'SIGTERM');
      },
    });
    expect(outcome).to.equal('143');
  });

  it('searches again after a while, for changes that the system does not report', async () => {
    const watcher = createWatcher(() => {});
    const { now } = performance;
    const clock = mock.method(performance, 'now', () => now.call(performance) + 60_000);
    try {
      await watcher.nextSearch(AbortSignal.timeout(20_000));
    } finally {
      clock.mock.restore();
      watcher.close();
    }
  });

  it('does not try a file again that failed and has not changed', async () => {
    await folder.put('scene.jpg', 'bad.jpg');
    const path = folder.file('bad.jpg');
    const past = new Date(Date.now() - 60_000);
    await utimes(path, past, past);
    const watcher = createWatcher(() => {});
    async function* inputs() {
      yield { path, relativeDir: '' };
    }
    const complete = async () => {
      let count = 0;
      for await (const _ of watcher.complete(inputs())) count += 1;
      return count;
    };
    expect(await complete()).to.equal(1);
    await watcher.failed(path);
    expect(await complete()).to.equal(0);
    await appendFile(path, 'more');
    await utimes(path, past, past);
    expect(await complete()).to.equal(1);
    await rm(path);
    watcher.close();
  });
});
