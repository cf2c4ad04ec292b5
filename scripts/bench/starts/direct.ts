/**
 * @module Alternative to launchers for the comparison: the server itself starts every program with execa. Replaces
 * `src/process/launcher/launcher.ts`, so it has the same exports.
 */
import { execa } from 'execa';
import type { LaunchedProcess, Launchers } from '../../../src/process/launcher/launcher.ts';
import { programScript, quote, type SpawnOptions } from '../../../src/process/launcher/shell.ts';

/** Returns launchers that start each program with execa. */
export function createLaunchers(): Launchers {
  return { spawn, close: async () => {} };
}

async function spawn(file: string, args: readonly string[], options: SpawnOptions): Promise<LaunchedProcess> {
  const pipesStdin = options.stdin === 'pipe';
  const input = pipesStdin ? '' : `exec <${quote(options.stdin)}; `;
  const script = input + programScript(file, args, options, '');
  const subprocess = execa('/bin/sh', ['-c', script], {
    cwd: '/',
    env: {},
    extendEnv: false,
    stdin: pipesStdin ? 'pipe' : 'ignore',
    buffer: false,
    reject: false,
    killDescendants: true,
    killSignal: 'SIGKILL',
    forceKillAfterDelay: false,
    cleanup: false,
  });
  const { stdin, stdout, stderr } = subprocess.nodeChildProcess;
  return {
    ...({ stdin: stdin ?? undefined, stdout, stderr } as LaunchedProcess),
    pid: subprocess.pid,
    exit: subprocess.then(({ exitCode, signal }) => (signal ? { signal } : { exitCode: exitCode ?? 126 })),
    kill: () => void subprocess.kill(),
  };
}
