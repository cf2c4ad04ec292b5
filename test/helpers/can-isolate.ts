import { spawnSync } from 'node:child_process';
import { launcherCommand } from '../../src/process/launcher/isolation.ts';

const [shell = '', ...words] = launcherCommand('namespace');

/** Whether the kernel gives namespaces here, which it does not in most containers. */
export const CAN_ISOLATE = spawnSync(shell, words, { input: '' }).status === 0;
