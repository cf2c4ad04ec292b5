/**
 * @module Runs the command line as a process, with standard input, with actions during the run, or
 * on a pseudoterminal.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MAIN, programEnvironment } from './process.ts';

export { MAIN };

export type CommandRun = Readonly<ReturnType<typeof describeRun>>;

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

/**
 * Describes the end of a command.
 *
 * @param status exit status, or the signal that ended the process
 */
export function describeRun(status: number | NodeJS.Signals, stdout: Buffer, stderr: Buffer) {
  const linesOf = (text: Buffer): readonly string[] => text.toString().split('\n').slice(0, -1);
  const [lines, complaints] = [linesOf(stdout), linesOf(stderr)];
  const objects = () => lines.map((line) => JSON.parse(line));
  return {
    status,
    stdout,
    /** Lines of stdout, without line ends. */
    lines,
    /** Lines of stderr, without line ends. */
    complaints,
    /** The status, and the lines of stderr: `1 imagemill: a.jpg is empty.` */
    outcome: [status, ...complaints].join(' '),
    /** Returns the lines of stdout with `--json`. */
    objects,
    /** Returns the last line with `--json`. */
    summary: () => objects().at(-1)?.summary,
  };
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
