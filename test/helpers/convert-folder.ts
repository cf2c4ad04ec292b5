/** @module A folder for tests of `imagemill convert`, with images and a private TEMP_DIR. */
import { cp, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fixturePath } from './client.ts';
import { type CommandOptions, type CommandRun, runCommand } from './command.ts';
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
  return {
    path,
    temp,
    async put(fixtureName, name) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await cp(fixturePath(fixtureName), join(path, name));
    },
    run: (args, options = {}) => runInProcess(['convert', ...args], withDefaults(options)),
    runProcess: (args, options = {}) => runCommand(['convert', ...args], withDefaults(options)),
    async files(within = '.') {
      const folder = join(path, within);
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
        .filter((name) => !name.startsWith('.imagemill/'))
        .sort();
    },
  };
}
