import { constants } from 'node:fs';
import { access, open, realpath } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Run } from './command.ts';

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
  /** libheif's decoder, which ImageMagick 6 needs for AVIF. */
  readonly heif: Tool | undefined;
  /** libwebp's assembler, which ImageMagick 6 needs for WebP that moves. */
  readonly img2webp: Tool | undefined;
}

export interface Search {
  /** Folders, separated as in PATH. */
  readonly path: string;
  /** Absolute paths that win over the search. */
  readonly magickBin?: string | undefined;
  readonly rsvgBin?: string | undefined;
}

/** A tool that does not answer such a question in this time is no use. */
const ANSWER_MS = 10_000;

/** How a tool is asked who it is, and what only the right one answers: its version. */
export interface Question {
  readonly args: readonly string[];
  readonly answer: RegExp;
}

export const QUESTIONS: Readonly<Record<keyof Toolchain, Question>> = {
  // Other programs are called `convert` too; only this line makes one ImageMagick.
  magick: { args: ['-version'], answer: /^Version: ImageMagick (([67])\.\S+)/m },
  rsvg: { args: ['--version'], answer: /^rsvg-convert(?: version)? (\d\S*)/m },
  heif: { args: ['--help'], answer: /libheif version: (\S+)/ },
  img2webp: { args: ['-version'], answer: /^(?:WebP Encoder version: )?(\d[\d.]*)/m },
};

export async function findToolchain(search: Search, run: Run): Promise<Toolchain> {
  const rsvgs = search.rsvgBin ? [search.rsvgBin] : onPath(['rsvg-convert'], search.path);
  const [magick, rsvg, heif, img2webp] = await Promise.all([
    findMagick(search, run),
    findTool(rsvgs, run, QUESTIONS.rsvg),
    findTool(onPath(['heif-convert'], search.path), run, QUESTIONS.heif),
    findTool(onPath(['img2webp'], search.path), run, QUESTIONS.img2webp),
  ]);
  return { magick, rsvg, heif, img2webp };
}

/** The first program of that name that may be run. */
export async function findProgram(name: string, searchPath: string): Promise<string | undefined> {
  return (await distinctPrograms(onPath([name], searchPath)))[0]?.path;
}

async function findMagick({ path, magickBin }: Search, run: Run): Promise<Magick | undefined> {
  const candidates = magickBin ? [magickBin] : onPath(['magick', 'convert'], path);
  const found = await findTool(candidates, run, QUESTIONS.magick);
  if (!found) return undefined;
  const { stdout } = await ask(run, found.path, ['-list', 'format']);
  return { ...found, major: found.version.startsWith('7') ? 7 : 6, ...parseFormats(stdout) };
}

/**
 * The best of the candidates that answer: real programs before scripts that only
 * pass calls on, which cost time at every call; then the highest major version.
 */
async function findTool(
  candidates: readonly string[],
  run: Run,
  question: Question,
): Promise<Tool | undefined> {
  const programs = await distinctPrograms(candidates);
  for (const scripts of [false, true]) {
    const asked = programs
      .filter((program) => program.script === scripts)
      .map(async ({ path }) => {
        const { stdout, stderr } = await ask(run, path, question.args);
        return { path, version: question.answer.exec(stdout + stderr)?.[1] ?? '' };
      });
    const tools = (await Promise.all(asked)).filter(({ version }) => version !== '');
    const [best] = tools.sort((a, b) => major(b) - major(a));
    if (best) return best;
  }
  return undefined;
}

const major = ({ version }: Tool): number => Number.parseInt(version, 10) || 0;

function onPath(names: readonly string[], path: string): string[] {
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
async function ask(
  run: Run,
  file: string,
  args: readonly string[],
): Promise<{ stdout: string; stderr: string }> {
  try {
    return await run({ file, args, cwd: '/', timeoutMs: ANSWER_MS });
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
