/** @module A folder for tests of `imagemill convert`, with images and a private TEMP_DIR. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fixture } from './client.ts';
import { type CommandOptions, type CommandRun, runCommand } from './command.ts';
import { COPY_SCENE, fakeMagick } from './fake-magick.ts';
import { makeTempDir } from './hooks.ts';
import { type InProcessOptions, runInProcess } from './in-process.ts';

/** Variants of a preset: names and options of the API, or only formats. */
export type Variants = readonly (string | { readonly name: string; readonly [option: string]: unknown })[];

/** A folder in which the command runs. */
export interface ConvertFolder {
  readonly path: string;
  /** TEMP_DIR of the command. */
  readonly temp: string;
  /** Copies an image of `fixtures/images/`. */
  put(fixtureName: string, name: string): Promise<void>;
  /** Runs `imagemill convert` in the process of the test. */
  run(args: readonly string[], options?: InProcessOptions): Promise<CommandRun>;
  /**
   * Converts the folder `in` to several results of each file in the folder `out`. One command is
   * faster than several.
   */
  runVariants(variants: Variants, args: readonly string[], options?: InProcessOptions): Promise<CommandRun>;
  /** Runs `imagemill convert` as a process. */
  runProcess(args: readonly string[], options?: CommandOptions): Promise<CommandRun>;
  /** Returns the path of a file in the folder. */
  file(...names: readonly string[]): string;
  read(name: string): Promise<Buffer>;
  text(name: string): Promise<string>;
  /** Writes a file, and the folders in which it is. */
  write(name: string, content: string | Uint8Array): Promise<void>;
  /** Lists all files below a folder, sorted, without the index. */
  files(within?: string): Promise<string[]>;
  /** Lists the complete results in the folder `out`. */
  results(): Promise<string[]>;
  /**
   * Creates a tool that waits while the folder `out` has more results than the limit, so that a run
   * cannot end early.
   */
  limitedTool(most: number): Promise<LimitedTool>;
}

/** A tool that copies a file. */
interface LimitedTool {
  readonly env: Readonly<Record<string, string>>;
  setLimit(most: number): Promise<void>;
}

/** Provides a new folder to each test of a suite. */
export function useConvertFolder(): ConvertFolder {
  let folder: ConvertFolder | undefined;
  beforeEach(async () => {
    folder = await createConvertFolder();
  });
  return new Proxy({} as ConvertFolder, { get: (_, name) => Reflect.get(folder as ConvertFolder, name) });
}

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
  const file = (...names: readonly string[]) => join(path, ...names);
  const write = async (name: string, content: string | Uint8Array) => {
    await mkdir(dirname(file(name)), { recursive: true });
    await writeFile(file(name), content);
  };
  const run = (args: readonly string[], options: InProcessOptions = {}) =>
    runInProcess(['convert', ...args], withDefaults(options));
  return {
    path,
    temp,
    put: async (fixtureName, name) => write(name, await fixture(fixtureName)),
    file,
    read: (name) => readFile(file(name)),
    text: (name) => readFile(file(name), 'utf8'),
    write,
    run,
    async runVariants(variants, args, options) {
      const named = variants.map((one) => (typeof one === 'string' ? { name: one, format: one } : one));
      await write('variants.json', JSON.stringify({ presets: [{ name: 'all', variants: named }] }));
      const preset = ['--presets', 'variants.json', '--preset', 'all', '--force'];
      return run(['in', '-o', 'out', ...preset, ...args], options);
    },
    runProcess: (args, options = {}) => runCommand(['convert', ...args], withDefaults(options)),
    files,
    results: async () =>
      (await files('out').catch(() => [])).filter((name) => !name.startsWith('.imagemill')),
    async limitedTool(most) {
      const limit = join(await makeTempDir('limit'), 'limit');
      const setLimit = (count: number): Promise<void> => writeFile(limit, `${count}`);
      await setLimit(most);
      const wait = `until [ "$(ls ${path}/out | wc -l)" -le "$(cat ${limit})" ]; do sleep 0.05; done`;
      const MAGICK_BIN = await fakeMagick(`${wait}; ${COPY_SCENE}`);
      return { env: { MAGICK_BIN, SANDBOX: 'off' }, setLimit };
    },
  };
}
