import { CommandError, type RunCommand } from './command.ts';
import { endedWell, failureOf, keepStart, keepTime, type LaunchDeps, launch } from './launch.ts';

/** Runs one command in a process of its own, with a time limit. */

/** Makes the function that runs commands. */
export function createRunner(deps: LaunchDeps): RunCommand {
  return async (command) => {
    if (command.signal?.aborted) throw new CommandError('cancelled', `${command.file} was not started`);
    const child = await launch(deps, command);
    const callOff = keepTime(command, child.stop);
    const stdout = keepStart(child.stdout);
    const stderr = keepStart(child.stderr);
    const ended = await child.ended;
    callOff();
    if (!endedWell(ended)) throw failureOf(ended, command, stderr());
    return { stdout: stdout(), stderr: stderr() };
  };
}
