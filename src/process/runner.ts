/** @module Runs each command in a new process, with a time limit. */

import { CommandError, type RunCommand } from './command.ts';
import {
  collectOutput,
  killOnTimeout,
  type LaunchDeps,
  launch,
  succeeded,
  toCommandError,
} from './launch.ts';

/** Creates a function that runs each command in a new process and kills it when its time limit expires. */
export function createRunner(deps: LaunchDeps): RunCommand {
  return async (command) => {
    if (command.signal?.aborted)
      throw new CommandError('cancelled', `${command.file} was cancelled before its start`);
    const child = await launch(deps, command);
    const cancelTimeout = killOnTimeout(command, child.stop);
    const stdout = collectOutput(child.stdout);
    const stderr = collectOutput(child.stderr);
    const ended = await child.ended;
    cancelTimeout();
    if (!succeeded(ended)) throw toCommandError(ended, command, stderr());
    return { stdout: stdout(), stderr: stderr() };
  };
}
