import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** What a command prints on a terminal, by script(1) of util-linux; both streams together, with their escapes. */
export async function runOnTerminal(line: string, cwd: string): Promise<{ status: number; shown: string }> {
  const env = { PATH: process.env.PATH, TERM: 'xterm' };
  const child = spawn('script', ['-qec', line, '/dev/null'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let shown = '';
  child.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  const [status] = await once(child, 'close');
  return { status, shown };
}
