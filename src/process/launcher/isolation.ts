/**
 * @module What a launcher is isolated by. In PID and IPC namespaces of its own the launcher is process 1: programs see no
 * process of the machine, and none of them outlives the launcher, whatever session or group it moves to.
 */

/** `namespace` where programs are to have PID and IPC namespaces of their own; see pid_namespaces(7). */
export type Isolation = 'none' | 'namespace';

/** Makes the kernel kill the launcher when the server ends, also after `kill -9`; see PR_SET_PDEATHSIG(2const). */
const DIE_WITH_SERVER = 'setpriv --pdeathsig KILL';

/** Root needs no user namespace, and may not make one in a chroot. */
const USER_NAMESPACE = process.getuid?.() === 0 ? '' : '--user --map-current-user';

const COMMANDS: Readonly<Record<Isolation, string>> = {
  none: `${DIE_WITH_SERVER} true && exec ${DIE_WITH_SERVER} /bin/sh; exec /bin/sh`,
  namespace: `exec ${DIE_WITH_SERVER} unshare ${USER_NAMESPACE} --pid --ipc --fork --kill-child /bin/sh`,
};

/** @returns the words of a command that starts the shell of a launcher */
export function launcherCommand(isolation: Isolation): readonly string[] {
  return ['/bin/sh', '-c', COMMANDS[isolation]];
}
