/** @module Runs commands on a pseudoterminal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

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
