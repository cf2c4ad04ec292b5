/** @module Finds installed tools, their versions, and the formats that ImageMagick supports. */
import { hash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { startsWith } from '../files/system.ts';
import { TOOL_NAMES, TOOLS, type ToolName, type VersionProbe } from '../tables/tools.ts';
import { type Output, PROBE_TIMEOUT_MS, type RunCommand } from './command.ts';
import { createProbeRunner } from './runner.ts';

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
export type Toolchain = { readonly magick: Magick | undefined } & {
  readonly [Name in Exclude<ToolName, 'magick'>]?: Tool | undefined;
};

/** Returns the tools that were found, with their names. */
export const installedTools = (toolchain: Toolchain): (Tool & { readonly name: ToolName })[] =>
  TOOL_NAMES.flatMap((name) => {
    const tool = toolchain[name];
    return tool ? [{ name, ...tool }] : [];
  });

/** Where to look for the tools. */
export interface ToolSearch {
  /** Folders, separated as in `PATH`. */
  readonly path: string;
  /** Absolute paths that override the search. */
  readonly named?: Readonly<Partial<Record<ToolName, string | undefined>>>;
  /** Tools for extra formats to find. Others are not searched, and need not run in the sandbox. */
  readonly optional?: readonly ToolName[];
}

/**
 * Identifies the installed tools without starting them: by path, size and time of change of each
 * program that {@link findToolchain} could select. An upgrade changes it.
 */
export async function fingerprintTools(search: ToolSearch): Promise<string> {
  const named = Object.values(search.named ?? {}).filter((path) => path !== undefined);
  const names = searchedTools(search).flatMap((name) => TOOLS[name].programs);
  const programs = await distinctPrograms([...named, ...candidatesOnPath(names, search.path)]);
  const lines = programs.map(async (program) => {
    const { size, mtimeMs } = await stat(program.path);
    return `${program.path} ${size} ${mtimeMs}`;
  });
  return hash('sha256', (await Promise.all(lines)).join('\n'));
}

/** Returns the tools that a search looks for. */
export function searchedTools({ optional = [] }: ToolSearch): ToolName[] {
  return TOOL_NAMES.filter((name) => TOOLS[name].neededFor !== 'extras' || optional.includes(name));
}

/** Finds the tools and their versions. A missing or unresponsive one is `undefined`. */
export async function findToolchain(search: ToolSearch): Promise<Toolchain> {
  const run = createProbeRunner(search.path);
  const found = searchedTools(search).map(async (name) => {
    const named = search.named?.[name];
    const candidates = named ? [named] : candidatesOnPath(TOOLS[name].programs, search.path);
    const tool = await findTool(candidates, run, TOOLS[name].probe);
    return [name, tool && name === 'magick' ? await readFormats(tool, run) : tool] as const;
  });
  return Object.fromEntries(await Promise.all(found)) as Toolchain;
}

async function readFormats(magick: Tool, run: RunCommand): Promise<Magick> {
  const { stdout } = await probe(run, magick.path, ['-list', 'format']);
  return { ...magick, major: magick.version.startsWith('7') ? 7 : 6, ...parseFormats(stdout) };
}

/**
 * Returns the best of the candidates that respond to the probe. Binaries precede wrapper scripts,
 * which add time to each call; then the highest major version wins.
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

/** Returns whether a version such as `7.1.1-43` is at least the other one, number by number. */
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
export const isScript = (path: string): Promise<boolean> => startsWith(path, '#!');

/** Returns the output of a program, or empty output when it fails. */
const probe = (run: RunCommand, file: string, args: readonly string[]): Promise<Output> =>
  run({ file, args, cwd: '/', timeoutMs: PROBE_TIMEOUT_MS }).catch(() => ({ stdout: '', stderr: '' }));

/**
 * Parses the output of `-list format` into the coders that can read and those that can write. A row
 * looks like `     WEBP* WEBP      rw+   WebP Image Format (libwebp 1.2.4 [020F])`.
 */
function parseFormats(list: string): Pick<Magick, 'reads' | 'writes' | 'libheif'> {
  const rows = [...list.matchAll(/^\s*([A-Z0-9-]+)\*?\s+\S+\s+([r-])([w-])[+-]\s/gm)];
  const names = (column: number, flag: string) =>
    new Set(rows.filter((row) => row[column] === flag).map((row) => row[1] as string));
  // The description ends in the version of the library.
  const libheif = /^\s*HEIC\*?\s.*\((\d[\d.]*)\)$/m.exec(list)?.[1];
  return { reads: names(2, 'r'), writes: names(3, 'w'), libheif };
}
