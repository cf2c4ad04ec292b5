/** @module Finds the tools that are installed, their versions, and the formats that ImageMagick supports. */

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, realpath, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { RunCommand } from './command.ts';

/** An installed program. */
export interface Tool {
  /** Absolute path. */
  readonly path: string;
  readonly version: string;
}

/** An installed ImageMagick. */
export interface Magick extends Tool {
  readonly major: 6 | 7;
  /** Canonical names of the coders that can read, and of those that can write. */
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** Version of libheif, if ImageMagick reads HEIC. */
  readonly libheif?: string | undefined;
}

/** Tools that were found. */
export interface Toolchain {
  readonly magick: Magick | undefined;
  /** rsvg-convert of librsvg, which renders SVG. */
  readonly rsvg: Tool | undefined;
  /** heif-convert of libheif, which decodes AVIF and HEIC for ImageMagick 6. */
  readonly heif: Tool | undefined;
  /** img2webp of libwebp, which assembles animated WebP for ImageMagick 6. */
  readonly img2webp: Tool | undefined;
  /** Decoder and encoder of libjxl, and encoder of libavif, if {@link ToolSearch.optional} names them. */
  readonly djxl?: Tool | undefined;
  readonly cjxl?: Tool | undefined;
  readonly avifenc?: Tool | undefined;
}

/** Tools that only the formats of `EXTRA_INPUTS` and `EXTRA_OUTPUTS` need. */
export type OptionalTool = 'djxl' | 'cjxl' | 'avifenc';

/** Where to look for the tools. */
export interface ToolSearch {
  /** Folders, separated as in `PATH`. */
  readonly path: string;
  /** Absolute paths that override the search. */
  readonly magickBin?: string | undefined;
  readonly rsvgBin?: string | undefined;
  /** Optional tools to find. The others are not searched for and need not run in the sandbox. */
  readonly optional?: readonly OptionalTool[];
}

/** Time limit of a probe, in ms. A tool that exceeds it counts as missing. */
const PROBE_TIMEOUT_MS = 10_000;

/** Identifies a tool and its version. */
export interface VersionProbe {
  /** Arguments that make the tool print its version. */
  readonly args: readonly string[];
  /** Matches the output of this tool only. The first group is the version. */
  readonly pattern: RegExp;
}

/** Version probe of each tool. */
export const VERSION_PROBES: Readonly<Record<keyof Toolchain, VersionProbe>> = {
  // Other programs are also named `convert`. Only ImageMagick prints this line.
  magick: { args: ['-version'], pattern: /^Version: ImageMagick (([67])\.\S+)/m },
  rsvg: { args: ['--version'], pattern: /^rsvg-convert(?: version)? (\d\S*)/m },
  heif: { args: ['--help'], pattern: /libheif version: (\S+)/ },
  img2webp: { args: ['-version'], pattern: /^(?:WebP Encoder version: )?(\d[\d.]*)/m },
  djxl: { args: ['--version'], pattern: /^djxl v(\S+)/m },
  cjxl: { args: ['--version'], pattern: /^cjxl v(\S+)/m },
  avifenc: { args: ['--version'], pattern: /^Version: (\d\S*)/m },
};

/** Names of the programs that {@link findToolchain} looks for. */
const PROGRAMS = ['magick', 'convert', 'rsvg-convert', 'heif-convert', 'img2webp'];

/**
 * Identifies the installed tools without starting them: by path, size and time of change of each program that
 * {@link findToolchain} could select. An upgrade changes it.
 */
export async function fingerprintTools({
  path,
  magickBin,
  rsvgBin,
  optional = [],
}: ToolSearch): Promise<string> {
  const named = [magickBin, rsvgBin].filter((bin) => bin !== undefined);
  const programs = await distinctPrograms([...named, ...candidatesOnPath([...PROGRAMS, ...optional], path)]);
  const lines = programs.map(async (program) => {
    const { size, mtimeMs } = await stat(program.path);
    return `${program.path} ${size} ${mtimeMs}`;
  });
  return createHash('sha256')
    .update((await Promise.all(lines)).join('\n'))
    .digest('hex');
}

/** Finds the tools, and their versions. A tool that is missing or does not respond is `undefined`. */
export async function findToolchain(search: ToolSearch, run: RunCommand): Promise<Toolchain> {
  const rsvgs = search.rsvgBin ? [search.rsvgBin] : candidatesOnPath(['rsvg-convert'], search.path);
  const findOptional = async (name: OptionalTool) => [
    name,
    await findTool(candidatesOnPath([name], search.path), run, VERSION_PROBES[name]),
  ];
  const [magick, rsvg, heif, img2webp, ...optional] = await Promise.all([
    findMagick(search, run),
    findTool(rsvgs, run, VERSION_PROBES.rsvg),
    findTool(candidatesOnPath(['heif-convert'], search.path), run, VERSION_PROBES.heif),
    findTool(candidatesOnPath(['img2webp'], search.path), run, VERSION_PROBES.img2webp),
    ...(search.optional ?? []).map(findOptional),
  ]);
  return { magick, rsvg, heif, img2webp, ...Object.fromEntries(optional) };
}

/** Returns the path of the first executable with this name, or `undefined`. */
export async function findProgram(name: string, searchPath: string): Promise<string | undefined> {
  return (await distinctPrograms(candidatesOnPath([name], searchPath)))[0]?.path;
}

async function findMagick({ path, magickBin }: ToolSearch, run: RunCommand): Promise<Magick | undefined> {
  const candidates = magickBin ? [magickBin] : candidatesOnPath(['magick', 'convert'], path);
  const found = await findTool(candidates, run, VERSION_PROBES.magick);
  if (!found) return undefined;
  const { stdout } = await probe(run, found.path, ['-list', 'format']);
  return { ...found, major: found.version.startsWith('7') ? 7 : 6, ...parseFormats(stdout) };
}

/**
 * Returns the best of the candidates that respond to the probe. Binaries precede wrapper scripts, which add time to each
 * call; then the highest major version wins.
 */
async function findTool(
  candidates: readonly string[],
  run: RunCommand,
  { args, pattern }: VersionProbe,
): Promise<Tool | undefined> {
  const programs = await distinctPrograms(candidates);
  for (const scripts of [false, true]) {
    const probed = programs
      .filter((program) => program.script === scripts)
      .map(async ({ path }) => {
        const { stdout, stderr } = await probe(run, path, args);
        return { path, version: pattern.exec(stdout + stderr)?.[1] ?? '' };
      });
    const tools = (await Promise.all(probed)).filter(({ version }) => version !== '');
    const [best] = tools.sort((a, b) => major(b) - major(a));
    if (best) return best;
  }
  return undefined;
}

const major = ({ version }: Tool): number => Number.parseInt(version, 10) || 0;

/** Returns whether a version such as `7.1.1-43` is the other one or a later one. Compares each number in it. */
export function isAtLeast(version: string, other: string): boolean {
  const numbersOf = (text: string): number[] => text.split(/\D+/).map(Number);
  const [have, want] = [numbersOf(version), numbersOf(other)];
  const at = want.findIndex((number, index) => number !== (have[index] ?? 0));
  return at === -1 || (have[at] ?? 0) > (want[at] as number);
}

function candidatesOnPath(names: readonly string[], path: string): string[] {
  const folders = path.split(delimiter).filter((folder) => folder.startsWith('/'));
  return names.flatMap((name) => folders.map((folder) => join(folder, name)));
}

/** Returns the paths of executables, without further links to the same file. */
async function distinctPrograms(paths: readonly string[]): Promise<{ path: string; script: boolean }[]> {
  const programs = new Map<string, { path: string; script: boolean }>();
  for (const path of paths) {
    try {
      await access(path, constants.X_OK);
      const real = await realpath(path);
      if (!programs.has(real)) programs.set(real, { path, script: await isScript(real) });
    } catch {
      // The file is missing or not executable.
    }
  }
  return [...programs.values()];
}

/** Returns whether a program is a script, which an interpreter runs. */
export async function isScript(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return buffer.toString('latin1') === '#!';
  } finally {
    await file.close();
  }
}

/** Returns the output of a program, or empty output when it fails. */
async function probe(
  run: RunCommand,
  file: string,
  args: readonly string[],
): Promise<{ stdout: string; stderr: string }> {
  try {
    return await run({ file, args, cwd: '/', timeoutMs: PROBE_TIMEOUT_MS });
  } catch {
    return { stdout: '', stderr: '' };
  }
}

/**
 * Parses the output of `-list format` into the coders that can read and those that can write. A row looks like
 * `     WEBP* WEBP      rw+   WebP Image Format (libwebp 1.2.4 [020F])`.
 */
export function parseFormats(list: string): {
  readonly reads: Set<string>;
  readonly writes: Set<string>;
  readonly libheif: string | undefined;
} {
  const rows = [...list.matchAll(/^\s*([A-Z0-9-]+)\*?\s+\S+\s+([r-])([w-])[+-]\s/gm)];
  const names = (column: number, flag: string) =>
    new Set(rows.filter((row) => row[column] === flag).map((row) => row[1] as string));
  // The description ends in the version of the library.
  const libheif = /^\s*HEIC\*?\s.*\((\d[\d.]*)\)$/m.exec(list)?.[1];
  return { reads: names(2, 'r'), writes: names(3, 'w'), libheif };
}
