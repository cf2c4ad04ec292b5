import { open } from 'node:fs/promises';
import type { Run } from './command.ts';
import { failureOf, keepStart, type LaunchDeps, launch } from './launch.ts';

/** Runs one command in a process of its own, with a time limit. */

/** Makes the function that runs commands. */
export function createRun(deps: LaunchDeps): Run {
  return async (command) => {
    const { stdin, timeoutMs, signal } = command;
    const input = stdin === undefined ? undefined : await open(stdin);
    try {
      const lifetime = { timeout: timeoutMs, ...(signal && { cancelSignal: signal }) };
      const child = launch(deps, command, input?.fd ?? 'ignore', lifetime);
      const stdout = keepStart(child.stdout as NodeJS.ReadableStream);
      const stderr = keepStart(child.stderr as NodeJS.ReadableStream);
      const ended = await child;
      if (ended.failed) throw failureOf(ended, command, stderr());
      return { stdout: stdout(), stderr: stderr() };
    } finally {
      await input?.close();
    }
  };
}
