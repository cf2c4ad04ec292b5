/**
 * @module Converts a folder of photos with the command line of imagemill, and with the tools that
 * people use instead.
 */
import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { BUILT_PROGRAM } from '../processes/start.ts';
import { formatSpread, markdownTable, median, spread } from '../statistics.ts';
import type { Image } from './images.ts';
import { QUALITY } from './settings.ts';

const WIDTH = 400;
const JOBS = availableParallelism();
/** Flag of Node.js in the first line of the program. */
const COMMAND_FLAG = '--max-semi-space-size=1';

/**
 * The commands. Each reads the folder `in` and writes WebP files of {@link WIDTH} pixels to the
 * folder `out`.
 */
const commandsOf = (magick: string, mogrify: string): Readonly<Record<string, string>> => ({
  imagemill: `'${process.execPath}' ${COMMAND_FLAG} '${BUILT_PROGRAM}' convert in -o out --format webp --quality ${QUALITY} --width ${WIDTH} --quiet`,
  mogrify: `${mogrify} -path out -format webp -strip -auto-orient -quality ${QUALITY} -resize '${WIDTH}x>' in/*.jpg`,
  [`xargs -P${JOBS} convert`]: `ls in | xargs -P${JOBS} -I{} ${magick} in/{} -strip -auto-orient -quality ${QUALITY} -resize '${WIDTH}x>' out/{}.webp`,
  vipsthumbnail: `vipsthumbnail in/*.jpg --size ${WIDTH}x -o '../out/%s.webp[Q=${QUALITY},strip]'`,
});

/** Wall and processor time of a command in s. */
interface Times {
  readonly wall: number;
  readonly processor: number;
}

/**
 * Measures all commands in turns, once per round.
 *
 * @param count number of files, all links of one photo
 * @param magick path of ImageMagick's `convert` or `magick`
 * @returns a Markdown table, without the commands that this machine lacks
 */
export function compareFolder(
  image: Image,
  count: number,
  rounds: number,
  folder: string,
  { path, major }: { readonly path: string; readonly major: 6 | 7 },
): string {
  mkdirSync(join(folder, 'in'));
  const first = join(folder, 'in/0.jpg');
  writeFileSync(first, image.bytes);
  for (let id = 1; id < count; id += 1) linkSync(first, join(folder, `in/${id}.jpg`));
  const mogrify = major === 7 ? `${path} mogrify` : path.replace(/convert(?=[^/]*$)/, 'mogrify');
  const measured = new Map<string, Times[]>();
  for (let round = 0; round < rounds; round += 1)
    for (const [name, command] of Object.entries(commandsOf(path, mogrify))) {
      rmSync(join(folder, 'out'), { recursive: true, force: true });
      mkdirSync(join(folder, 'out'));
      const times = measure(command, folder);
      if (times) measured.set(name, [...(measured.get(name) ?? []), times]);
    }
  return format(measured, count);
}

/** Returns undefined if the command fails. */
function measure(command: string, cwd: string): Times | undefined {
  // Resources of the processes that a shell has waited for are known to the shell alone.
  const script = `TIMEFORMAT='%R %U %S'; time { ${command}; } >log 2>&1`;
  const { status, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' });
  const [wall = 0, user = 0, system = 0] = stderr.trim().split(' ').map(Number);
  return status === 0 ? { wall, processor: user + system } : undefined;
}

function format(measured: ReadonlyMap<string, readonly Times[]>, count: number): string {
  const own = measured.get('imagemill') ?? [];
  const rows = [...measured].map(([name, times]) => {
    const ratios = times.map(({ wall }, round) => (own[round]?.wall ?? Number.NaN) / wall);
    return [
      name,
      median(times.map(({ wall }) => wall)).toFixed(1),
      ((median(times.map(({ processor }) => processor)) / count) * 1000).toFixed(1),
      formatSpread(spread(ratios)),
    ];
  });
  return markdownTable(['command', 's', 'CPU ms per file', 'time of imagemill, relative to it'], rows);
}
