/** @module Detects whether launchers can be isolated by namespaces. */
import { spawnSync } from 'node:child_process';
import { launcherCommand } from '../../src/process/launcher/shell.ts';

const [shell = '', ...args] = launcherCommand('namespace');

/** True if the kernel allows namespaces, which it does not in most containers. */
export const CAN_ISOLATE = spawnSync(shell, args, { input: '' }).status === 0;
