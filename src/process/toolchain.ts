import { constants } from 'node:fs';
import { access, open, realpath } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { RunCommand } from './command.ts';

/** Finds the programs this machine has, and asks them who they are and what they can do. */

export interface Tool {
  /** Absolute path. */
  readonly path: string;
  readonly version: string;
}

export interface Magick extends Tool {
  readonly major: 6 | 7;
  /** Canonical coder names it can read and write. */
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
}

export interface Toolchain {
  readonly magick: Magick | undefined;
  readonly rsvg: Tool | undefined;
  /** libheif's decoder, which ImageMagick 6 needs for AVIF and HEIC. */
  readonly heif: Tool | undefined;
  /** libwebp's assembler, which ImageMagick 6 needs for WebP that moves. */
  readonly img2webp: Tool | undefined;
  /** libjxl's decoder and encoder, and libavif's encoder: looked for only when {@link ToolSearch.optional} names them. */
  readonly djxl?: Tool | undefined;
  readonly cjxl?: Tool | undefined;
  readonly avifenc?: Tool | undefined;
}

/** Tools that only formats need which an operator has to switch on. */
export type OptionalTool = 'djxl' | 'cjxl' | 'avifenc';

export interface ToolSearch {
  /** Folders, separated as in PATH. */
  readonly path: string;
  /** Absolute paths that win over the search. */
  readonly magickBin?: string | undefined;
  readonly rsvgBin?: string | undefined;
  /** What is not asked for is not looked for, and need not run in the sandbox. */
  readonly optional?: readonly OptionalTool[];
}

/** A tool that does not answer such a question in this time is no use. */
const PROBE_TIMEOUT_MS = 10_000;

/** How a tool is asked who it is, and what only the right one answers: its version. */
export interface VersionProbe {
  readonly args: readonly string[];
  readonly pattern: RegExp;
}

export const VERSION_PROBES: Readonly<Record<keyof Toolchain, VersionProbe>> = {
  // Other programs are called `convert` too; only this line makes one ImageMagick.
  magick: { args: ['-version'], pattern: /^Version: ImageMagick (([67])\.\S+)/m },
  rsvg: { args: ['--version'], pattern: /^rsvg-convert(?: version)? (\d\S*)/m },
  heif: { args: ['--help'], pattern: /libheif version: (\S+)/ },
  img2webp: { args: ['-version'], pattern: /^(?:WebP Encoder version: )?(\d[\d.]*)/m },
  djxl: { args: ['--version'], pattern: /^djxl v(\S+)/m },
  cjxl: { args: ['--version'], pattern: /^cjxl v(\S+)/m },
  avifenc: { args: ['--version'], pattern: /^Version: (\d\S*)/m },
};

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

/** The first program of that name that may be run. */
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
 * The best of the candidates that answer: real programs before scripts that only
 * pass calls on, which cost time at every call; then the highest major version.
 */
async function findTool(
  candidates: readonly string[],
  run: RunCommand,
  question: VersionProbe,
): Promise<Tool | undefined> {
  const programs = await distinctPrograms(candidates);
  for (const scripts of [false, true]) {
    const asked = programs
      .filter((program) => program.script === scripts)
      .map(async ({ path }) => {
        const { stdout, stderr } = await probe(run, path, question.args);
        return { path, version: question.pattern.exec(stdout + stderr)?.[1] ?? '' };
      });
    const tools = (await Promise.all(asked)).filter(({ version }) => version !== '');
    const [best] = tools.sort((a, b) => major(b) - major(a));
    if (best) return best;
  }
  return undefined;
}

const major = ({ version }: Tool): number => Number.parseInt(version, 10) || 0;

function candidatesOnPath(names: readonly string[], path: string): string[] {
  const folders = path.split(delimiter).filter((folder) => folder.startsWith('/'));
  return names.flatMap((name) => folders.map((folder) => join(folder, name)));
}

/** Those that exist and may be run, each once, however many links lead to it. */
async function distinctPrograms(paths: readonly string[]): Promise<{ path: string; script: boolean }[]> {
  const programs = new Map<string, { path: string; script: boolean }>();
  for (const path of paths) {
    try {
      await access(path, constants.X_OK);
      const real = await realpath(path);
      if (!programs.has(real)) programs.set(real, { path, script: await isScript(real) });
    } catch {
      // Not there, or not ours to run: the next one may be.
    }
  }
  return [...programs.values()];
}

async function isScript(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return buffer.toString('latin1') === '#!';
  } finally {
    await file.close();
  }
}

/** What a program answers, whatever status it ends with; nothing when it cannot be asked. */
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

/** Rows such as `     WEBP* WEBP      rw+   WebP Image Format (libwebp 1.2.4 [020F])`. */
export function parseFormats(list: string): { reads: Set<string>; writes: Set<string> } {
  const rows = [...list.matchAll(/^\s*([A-Z0-9-]+)\*?\s+\S+\s+([r-])([w-])[+-]\s/gm)];
  const names = (column: number, flag: string) =>
    new Set(rows.filter((row) => row[column] === flag).map((row) => row[1] as string));
  return { reads: names(2, 'r'), writes: names(3, 'w') };
}
