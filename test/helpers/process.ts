import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from './util.ts';

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

/** The service as a process of its own, as an operator starts it. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Everything it printed so far. */
  output(): string;
  /** The base address, once it listens. */
  base(): Promise<string>;
  /** Its exit status, or the signal that ended it. */
  ended(): Promise<number | NodeJS.Signals>;
}

/** @param before a program and arguments that start it in their turn */
export function startProcess(
  environment: Readonly<Record<string, string | undefined>>,
  before: readonly string[] = [],
): ServiceProcess {
  const [program = process.execPath, ...args] = [...before, process.execPath, MAIN];
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '0', ...environment },
  });
  const end = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data;
    });
  }
  return {
    child,
    pid: child.pid as number,
    output: () => output,
    async base() {
      // A start tries every tool, which takes seconds on a busy machine.
      const match = await eventually(
        () => /listening on (http:\/\/[\d.]+:\d+)/.exec(output) ?? undefined,
        25,
      );
      return `${match[1]}/api/v1`;
    },
    async ended() {
      const [code, signal] = await end;
      return code ?? (signal as NodeJS.Signals);
    },
  };
}

/**
 * What a program prints when it is given `input`.
 *
 * @throws Error with what it says on standard error when it fails
 */
export async function pipe(program: string, args: readonly string[], input: Uint8Array): Promise<Buffer> {
  const child = spawn(program, args, { stdio: 'pipe' });
  const printed: Buffer[] = [];
  let complaint = '';
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  child.stdin.on('error', () => {}); // it may have read enough
  child.stdin.end(input);
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) throw new Error(complaint.trim().split('\n').at(-1) ?? `status ${status}`);
  return Buffer.concat(printed);
}
