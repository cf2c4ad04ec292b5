import { appendFile, mkdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
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
  const inputsOf = ({ lines }: CommandRun): string[] =>
    lines.slice(0, -1).map((line) => JSON.parse(line).input);

  it('converts files that arrive in a folder, in new sub-folders too, and files that change', async () => {
    const ended = await watching(async () => {
      await folder.put('scene.png', 'photos/second.png');
      await folder.put('scene.jpg', 'photos/2024/may/third.jpg');
      await resultOf('second.png.webp');
      await resultOf('2024/may/third.jpg.webp');
      await folder.put('scene.jpg', 'photos/2024/may/fourth.jpg');
      await resultOf('2024/may/fourth.jpg.webp');
      const [before, other] = [await resultOf('second.png.webp'), await fixture('window.png')];
      await folder.write('photos/second.png', other);
      await eventually(async () => !(await resultOf('second.png.webp')).equals(before));
    });
    expect(ended.outcome).to.equal('130');
    expect(inputsOf(ended).sort()).to.deep.equal([
      ...['photos/2024/may/fourth.jpg', 'photos/2024/may/third.jpg', 'photos/first.jpg'],
      ...['photos/second.png', 'photos/second.png'],
    ]);
  });

  it('reports a file that cannot be converted once, and converts it when it has changed', async () => {
    const ended = await watching(async (printed) => {
      await folder.write('photos/bad.png', 'no image');
      await eventually(() => printed().includes('"error"'));
      await folder.put('scene.jpg', 'photos/later.jpg'); // a later search, which must not report the file again
      await resultOf('later.jpg.webp');
      await folder.write('photos/bad.png', await fixture('scene.png'));
      await resultOf('bad.png.webp');
    });
    const errors = ended.lines.filter((line) => line.includes('"error"'));
    expect(errors).to.have.length(1);
    expect(errors[0]).to.include('UNSUPPORTED_TYPE');
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

  it('finds files in a folder that was removed and created again', async () => {
    const ended = await watching(async () => {
      await folder.put('scene.jpg', 'photos/may/second.jpg');
      await resultOf('may/second.jpg.webp');
      await rm(folder.file('photos/may'), { recursive: true });
      await folder.put('scene.png', 'photos/may/third.png');
      await resultOf('may/third.png.webp');
      await folder.put('scene.png', 'photos/may/fourth.png');
      await resultOf('may/fourth.png.webp');
    });
    expect(inputsOf(ended).at(-1)).to.equal('photos/may/fourth.png');
  });

  it('searches again after a while, for changes that the system does not report', async () => {
    const watcher = createWatcher(() => {}, 600);
    await watcher.nextSearch(AbortSignal.timeout(20_000));
    watcher.close();
  });

  it('converts a file that was incomplete again when it has changed', async () => {
    const bytes = await fixture('scene.png');
    await watching(async () => {
      await folder.write('photos/slow.png', bytes.subarray(0, 500));
      await resultOf('slow.png.webp');
      await folder.write('photos/slow.png', bytes);
      await eventually(async () => (await resultOf('slow.png.webp')).subarray(-bytes.length).equals(bytes));
    });
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

  it('reports a result that is up to date once, and not again with each later search', async () => {
    await folder.put('scene.jpg', 'photos/old.jpg');
    // Complete in the first search, as it has not changed in the last two seconds.
    await utimes(folder.file('photos/old.jpg'), 1, 1);
    await folder.run(['photos', '-o', 'out', '--update'], { env });
    const { lines } = await watching(async () => {
      await folder.put('scene.jpg', 'photos/later.jpg');
      await resultOf('later.jpg.webp');
    });
    expect(JSON.parse(lines.at(-1) ?? '').summary).to.include({ converted: 2, upToDate: 1 });
  });
});
