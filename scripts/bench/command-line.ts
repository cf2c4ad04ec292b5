import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from '../../src/conversion/inspect/index.ts';
import { decodingOf } from '../../src/conversion/plan/decoding.ts';
import { plan } from '../../src/conversion/plan/index.ts';
import type { InputType, OutputType } from '../../src/formats.ts';
import { type Job, percentile } from './load.ts';
import { QUALITY } from './settings.ts';

/** The same commands as the service runs, by a shell and with nothing around them. */

export interface Tools {
  readonly magick: { readonly path: string; readonly major: 6 | 7 };
  readonly rsvg: string;
}

const TYPES: Readonly<Record<string, InputType>> = { tiff: 'tiff', ico: 'ico' };

async function commandsOf(job: Job, folder: string, tools: Tools): Promise<string[]> {
  const { image, format, side } = job;
  writeFileSync(join(folder, 'in'), image.bytes);
  const extension = image.file.split('.').at(-1) as string;
  const type = TYPES[extension] ?? (extension as InputType);
  const options = {
    format: format as OutputType,
    quality: QUALITY,
    stripMetadata: true,
    width: side,
    height: side,
  };
  const asset = (name: string) => new URL(`../../assets/${name}`, import.meta.url).pathname;
  const namedProfiles = { 'display-p3': asset('display-p3.icc'), rec2020: asset('rec2020.icc') };
  const picture = await inspect(join(folder, 'in'), type);
  const machine = { magick: tools.magick.major, srgbProfile: asset('srgb.icc'), namedProfiles };
  const decoding = decodingOf(picture, machine);
  const readable = { ...picture, ...(decoding && { decoded: [decoding.output] }) };
  const steps = [...(decoding ? [decoding.step] : []), ...plan(readable, options, machine).steps];
  const programs = {
    magick: tools.magick.path,
    rsvg: tools.rsvg,
    heif: 'heif-convert',
    img2webp: 'img2webp',
    djxl: 'djxl',
    cjxl: 'cjxl',
    avifenc: 'avifenc',
  };
  return steps.map(({ tool, args, stdin }) =>
    [programs[tool], ...args.map((arg) => `'${arg}'`), ...(stdin ? ['<', stdin] : [])].join(' '),
  );
}

/** Milliseconds from start to end, one after another: the median. Undefined when they fail. */
export async function commandLineMs(job: Job, tools: Tools, seconds: number): Promise<number | undefined> {
  return inFolder(async (folder) => {
    const commands = (await commandsOf(job, folder, tools)).join(' && ');
    const script = `${commands} >/dev/null || exit 1
      end=$(( \${EPOCHREALTIME/./} + ${Math.round(seconds * 1_000_000)} )); after=0
      while [ \${after/./} -lt $end ]; do
        before=$EPOCHREALTIME; ${commands} >/dev/null; after=$EPOCHREALTIME
        echo $(( \${after/./} - \${before/./} ))
      done`;
    const { status, stdout } = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
    if (status !== 0) return undefined;
    const times = stdout
      .split('\n')
      .filter(Boolean)
      .map((us) => Number(us) / 1000);
    return percentile(
      times.sort((a, b) => a - b),
      0.5,
    );
  });
}

/** Conversions a second by `xargs -P`, which starts the tool itself. Undefined where it takes two tools, or a file on standard input. */
export async function xargsPerSecond(
  job: Job,
  tools: Tools,
  ways: number,
  seconds: number,
  expectedPerSecond: number,
): Promise<number | undefined> {
  return inFolder(async (folder) => {
    const [command, second] = await commandsOf(job, folder, tools);
    if (!command || second || command.includes('<')) return undefined;
    const count = Math.max(2 * ways, Math.round(seconds * expectedPerSecond));
    const numbered = command.replace(/:image\.(\w+)'$/, ":image-{}.$1'");
    const started = performance.now();
    execFileSync('sh', ['-c', `seq ${count} | xargs -P ${ways} -I{} ${numbered} >/dev/null`], {
      cwd: folder,
    });
    return (count / (performance.now() - started)) * 1000;
  });
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'imagemill-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
