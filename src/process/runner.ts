/** @module Runs each command in a new process, with a time limit. */

import { CommandError, type RunCommand } from './command.ts';
import { endedWell, failureOf, keepStart, keepTime, type LaunchDeps, launch } from './launch.ts';

/** Creates a function that runs each command in a new process and kills it when its time limit expires. */
export function createRunner(deps: LaunchDeps): RunCommand {
  return async (command) => {
    if (command.signal?.aborted) throw new CommandError('cancelled', `${command.file} was not started`);
    const child = await launch(deps, command);
    const cancelTimeout = keepTime(command, child.stop);
    const stdout = keepStart(child.stdout);
    const stderr = keepStart(child.stderr);
    const ended = await child.ended;
    cancelTimeout();
    if (!endedWell(ended)) throw failureOf(ended, command, stderr());
    return { stdout: stdout(), stderr: stderr() };
  };
}
