/**
 * @module Runs the command line as a process, with standard input, with actions during the run, or
 * on a pseudoterminal.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MAIN, programEnvironment } from './process.ts';

export { MAIN };

/** Result of a command. */
export interface CommandRun {
  /** Exit status, or the signal that ended the process. */
  readonly status: number | NodeJS.Signals;
  readonly stdout: Buffer;
  /** Lines of stdout, without line ends. */
  readonly lines: readonly string[];
  /** Lines of stderr, without line ends. */
  readonly complaints: readonly string[];
  /** The status, and the lines of stderr: `1 imagemill: a.jpg is empty.` */
  readonly outcome: string;
}

/** Environment, working directory and input of a command. */
export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Program that starts the command, with its arguments. */
  readonly launcher?: readonly string[];
  /** Standard input; `never` leaves it open without data. */
  readonly input?: Uint8Array | 'never';
  /**
   * Called with the process ID as soon as the command runs. `printed` returns its standard output
   * so far.
   */
  readonly meanwhile?: (pid: number, printed: () => string) => Promise<void>;
}

/** Runs `imagemill` with arguments and waits until it exits. */
export async function runCommand(
  args: readonly string[],
  { env = {}, cwd, launcher = [], input, meanwhile }: CommandOptions = {},
): Promise<CommandRun> {
  const [program = process.execPath, ...rest] = [...launcher, process.execPath, MAIN, ...args];
  const child = spawn(program, rest, {
    env: { ...programEnvironment(), ...env },
    ...(cwd && { cwd }),
  });
  const outputs = [child.stdout, child.stderr].map((stream) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    return chunks;
  });
  child.stdin.on('error', () => {}); // the command may not read its input
  if (input !== 'never') child.stdin.end(input);
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  await meanwhile?.(child.pid as number, () => Buffer.concat(outputs[0] ?? []).toString());
  const [code, signal] = await closed;
  const [stdout, stderr] = outputs.map((chunks) => Buffer.concat(chunks)) as [Buffer, Buffer];
  return describeRun(code ?? (signal as NodeJS.Signals), stdout, stderr);
}

export function describeRun(status: CommandRun['status'], stdout: Buffer, stderr: Buffer): CommandRun {
  const [lines, complaints] = [stdout, stderr].map((text) => text.toString().split('\n').slice(0, -1)) as [
    string[],
    string[],
  ];
  return { status, stdout, lines, complaints, outcome: [status, ...complaints].join(' ') };
}

/**
 * Runs a command on a pseudoterminal with script(1) of util-linux.
 *
 * @param input what the user types
 * @returns the exit status, and stdout and stderr together with their escape sequences
 */
export async function runOnTerminal(
  line: string,
  cwd: string,
  input?: string,
): Promise<{ status: number; shown: string }> {
  const env = { PATH: process.env.PATH, TERM: 'xterm' };
  const child = spawn('script', ['-qec', line, '/dev/null'], { cwd, env, stdio: 'pipe' });
  if (input === undefined) child.stdin.end();
  else child.stdin.write(input);
  let shown = '';
  child.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  const [status] = await once(child, 'close');
  return { status, shown };
}
