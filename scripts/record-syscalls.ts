/**
 * @module Records the system calls that the tools make: converts every fixture to every output with
 * several options.
 *
 *     node scripts/record-syscalls.ts [FOLDER]
 *     sh scripts/debian-13.sh node scripts/record-syscalls.ts
 *
 * Requires strace. FOLDER holds additional images. Prints one line per call: the name, the
 * arguments that a filter can check, and the number of calls. `scripts/make-seccomp.py` is derived
 * from the output on Debian 12 and 13.
 */
import { existsSync, mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConvertOptions } from '../src/conversion/plan/types.ts';
import { TOOLS } from '../src/tables/tools.ts';
import { convertWith, typeOf } from '../test/helpers/engine.ts';
import { writeScript } from '../test/helpers/util.ts';
import { startEngine } from './engine.ts';

/** The programs of the tools, which Debian installs in /usr/bin. */
const PROGRAMS = Object.values(TOOLS).flatMap(({ programs }) => programs);
const FIXTURES = ['images', 'traps', 'extra'].map(
  (name) => new URL(`../fixtures/${name}`, import.meta.url).pathname,
);

/** Options for each conversion. */
const VARIANTS: readonly Omit<ConvertOptions, 'format'>[] = [
  { quality: 80, metadata: 'none' },
  { quality: 100, metadata: 'all', width: 17, background: '#336699' },
  { quality: 30, metadata: 'none', height: 4000, frames: 'first', pages: 'first' },
];

/** Positions of the arguments to record for each call, in the order that strace prints them. */
const RECORDED: Readonly<Record<string, readonly number[]>> = {
  arch_prctl: [0],
  clone: [0, 1, 2],
  fcntl: [1],
  futex: [1],
  ioctl: [1],
  madvise: [2],
  mmap: [2, 3],
  mprotect: [2],
  mremap: [3],
  openat: [2],
  prctl: [0],
  prlimit64: [0, 1],
  seccomp: [0],
  socket: [0, 1],
};

using temporary = mkdtempDisposableSync(join(tmpdir(), 'imagemill-syscalls-'));
const folder = temporary.path;
const [traces, tracedTools] = [join(folder, 'traces'), join(folder, 'tools')];
await makeTracedTools();
await convertEverything([...FIXTURES, ...process.argv.slice(2)]);
for (const [call, count] of [...countCalls()].sort()) console.log(`${call}\t${count}`);

/** Creates a folder of scripts named after the tools. Each runs its tool under strace. */
async function makeTracedTools(): Promise<void> {
  for (const path of [traces, tracedTools]) mkdirSync(path);
  for (const tool of PROGRAMS.filter((name) => existsSync(`/usr/bin/${name}`)))
    await writeScript(
      tool,
      `exec /usr/bin/strace -f -qq -s 16 -o "${traces}/$$" /usr/bin/${tool} "$@"`,
      tracedTools,
    );
}

/** Converts every image in `folders` with the traced tools, with all formats and variants. */
async function convertEverything(folders: readonly string[]): Promise<void> {
  const settings = { PATH: tracedTools, TEMP_DIR: join(folder, 'work'), SANDBOX: 'off', CONCURRENCY: '1' };
  const extras = { EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all', CONVERT_TIMEOUT_MS: '120000' };
  await using engine = await startEngine('fatal', { ...settings, ...extras });
  for (const path of folders.flatMap((from) => readdirSync(from).map((name) => join(from, name)))) {
    const bytes = readFileSync(path);
    const type = path.endsWith('.json') ? undefined : await typeOf(bytes);
    if (!type || !engine.capabilities.inputs.includes(type)) continue;
    for (const format of engine.capabilities.outputs)
      for (const options of VARIANTS) {
        const input = { type, bytes, label: path };
        // A rejected fixture still produces a trace.
        await convertWith(engine, input, { format, ...options }, async () => {}).catch(() => {});
      }
  }
}

/** Counts the calls in all traces by name and recorded arguments. */
function countCalls(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of readdirSync(traces)) {
    for (const line of readFileSync(join(traces, name), 'utf8').split('\n')) {
      const call = describe(line);
      if (call) counts.set(call, (counts.get(call) ?? 0) + 1);
    }
  }
  return counts;
}

/** Formats a line of strace output such as `1234 fcntl(3, F_GETFL) = 0` as `fcntl F_GETFL`. */
function describe(line: string): string | undefined {
  const [, name, rest = ''] = /^\d+ +(\w+)\((.*)/.exec(line) ?? [];
  if (!name) return undefined;
  const places = RECORDED[name] ?? [];
  const args = rest.split(/, |\)/);
  return [name, ...places.map((place) => args[place] ?? '')].join(' ');
}
