/** @module A folder for tests of `imagemill convert`, with images and a private TEMP_DIR. */
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fixturePath } from './client.ts';
import { type CommandOptions, type CommandRun, runCommand } from './command.ts';
import { fakeMagick } from './fake-magick.ts';
import { makeTempDir } from './hooks.ts';
import { type InProcessOptions, runInProcess } from './in-process.ts';

/** A folder in which the command runs. */
export interface ConvertFolder {
  readonly path: string;
  /** TEMP_DIR of the command. */
  readonly temp: string;
  /** Copies an image of `fixtures/images/`. */
  put(fixtureName: string, name: string): Promise<void>;
  /** Runs `imagemill convert` in the process of the test. */
  run(args: readonly string[], options?: InProcessOptions): Promise<CommandRun>;
  /** Runs `imagemill convert` as a process. */
  runProcess(args: readonly string[], options?: CommandOptions): Promise<CommandRun>;
  /** Lists all files below a folder, sorted, without the index. */
  files(within?: string): Promise<string[]>;
  /** Lists the complete results in the folder `out`. */
  results(): Promise<string[]>;
  /** Creates a tool that waits while the folder `out` has more results than the limit, so that a run cannot end early. */
  limitedTool(most: number): Promise<LimitedTool>;
}

/** A tool that copies a file. */
interface LimitedTool {
  readonly env: Readonly<Record<string, string>>;
  setLimit(most: number): Promise<void>;
}

/** Creates a folder. */
export async function createConvertFolder(): Promise<ConvertFolder> {
  const path = await makeTempDir('convert');
  const temp = join(await makeTempDir('temp'), 'mill');
  const withDefaults = <T extends InProcessOptions>(options: T) => ({
    cwd: path,
    ...options,
    env: { TEMP_DIR: temp, ...options.env },
  });
  const files = async (within = '.'): Promise<string[]> => {
    const folder = join(path, within);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
      .filter((name) => !name.startsWith('.imagemill/'))
      .sort();
  };
  return {
    path,
    temp,
    async put(fixtureName, name) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await cp(fixturePath(fixtureName), join(path, name));
    },
    run: (args, options = {}) => runInProcess(['convert', ...args], withDefaults(options)),
    runProcess: (args, options = {}) => runCommand(['convert', ...args], withDefaults(options)),
    files,
    results: async () =>
      (await files('out').catch(() => [])).filter((name) => !name.startsWith('.imagemill')),
    async limitedTool(most) {
      const limit = join(await makeTempDir('limit'), 'limit');
      const setLimit = (count: number): Promise<void> => writeFile(limit, `${count}`);
      await setLimit(most);
      const wait = `until [ "$(ls ${path}/out | wc -l)" -le "$(cat ${limit})" ]; do sleep 0.05; done`;
      const MAGICK_BIN = await fakeMagick(`${wait}; cp ${fixturePath('scene.webp')} image.webp`);
      return { env: { MAGICK_BIN, SANDBOX: 'off' }, setLimit };
    },
  };
}
