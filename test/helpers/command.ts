import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The program as people type it. */

export const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

export interface CommandRun {
  /** Its exit status, or the signal that ended it. */
  readonly status: number | NodeJS.Signals;
  readonly stdout: Buffer;
  /** Both as lines, without the last line's end. */
  readonly lines: readonly string[];
  readonly complaints: readonly string[];
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** `never` is one that does not come. */
  readonly input?: Uint8Array | 'never';
  /** Is given the process as soon as it runs. */
  readonly meanwhile?: (pid: number) => Promise<void>;
}

export async function runCommand(
  args: readonly string[],
  { env = {}, cwd, input, meanwhile }: CommandOptions = {},
): Promise<CommandRun> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH, ...env },
    ...(cwd && { cwd }),
  });
  const printed = [child.stdout, child.stderr].map((stream) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    return chunks;
  });
  child.stdin.on('error', () => {}); // it may want nothing of it
  if (input !== 'never') child.stdin.end(input);
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  await meanwhile?.(child.pid as number);
  const [code, signal] = await closed;
  const [stdout, stderr] = printed.map((chunks) => Buffer.concat(chunks)) as [Buffer, Buffer];
  return {
    status: code ?? (signal as NodeJS.Signals),
    stdout,
    lines: linesOf(stdout),
    complaints: linesOf(stderr),
  };
}

const linesOf = (text: Buffer): string[] => text.toString().split('\n').slice(0, -1);
