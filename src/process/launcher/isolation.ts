/**
 * @module Isolation of a launcher. In separate PID and IPC namespaces the launcher is process 1: programs see no process of
 * the machine, and no program outlives the launcher, even if it moves to another session or process group.
 */

/** `namespace` starts the launcher in new PID and IPC namespaces; see pid_namespaces(7). */
export type Isolation = 'none' | 'namespace';

/** Makes the kernel kill the launcher when the server ends, even after `kill -9`; see PR_SET_PDEATHSIG(2const). */
const DIE_WITH_SERVER = 'setpriv --pdeathsig KILL';

/** Root needs no user namespace, and cannot create one in a chroot. */
const USER_NAMESPACE = process.getuid?.() === 0 ? '' : '--user --map-current-user';

const COMMANDS: Readonly<Record<Isolation, string>> = {
  none: `${DIE_WITH_SERVER} true && exec ${DIE_WITH_SERVER} /bin/sh; exec /bin/sh`,
  namespace: `exec ${DIE_WITH_SERVER} unshare ${USER_NAMESPACE} --pid --ipc --fork --kill-child /bin/sh`,
};

/** Returns the command that starts the shell of a launcher: the program and its arguments. */
export function launcherCommand(isolation: Isolation): readonly string[] {
  return ['/bin/sh', '-c', COMMANDS[isolation]];
}
