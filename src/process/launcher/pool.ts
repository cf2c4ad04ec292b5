/** @module Pool of launchers. */
import { type Exit, type LaunchedProcess, type Launcher, startLauncher } from './launcher.ts';
import type { SpawnOptions } from './script.ts';
import type { Isolation } from './shell.ts';

/** A pool of launchers. It grows to the largest number of programs that ran at once. */
export interface Launchers {
  /**
   * Starts a program with an idle launcher, or with a new one.
   *
   * @throws {Error} with the code of errno(3) when the machine has no process or no file descriptor left
   */
  spawn(file: string, args: readonly string[], options: SpawnOptions): Promise<LaunchedProcess>;
  /** Kills all launchers and their programs, and removes their folders. */
  close(): Promise<void>;
}

/**
 * Creates a pool.
 *
 * @param home returns the folder in which the launchers create their pipes
 */
export function createLaunchers(home: () => Promise<string>, isolation: Isolation = 'none'): Launchers {
  const idle: Launcher[] = [];
  const all = new Set<Launcher>();
  const starting = new Set<Promise<Launcher>>();
  let closed = false;

  async function acquire(): Promise<Launcher> {
    for (let launcher = idle.pop(); launcher; launcher = idle.pop()) {
      if (launcher.alive) return launcher;
      release(launcher);
    }
    if (closed) throw new Error('the launchers are closed');
    const started = start().finally(() => starting.delete(started));
    starting.add(started);
    return started;
  }

  async function start(): Promise<Launcher> {
    const launcher = await startLauncher(await home(), isolation);
    all.add(launcher);
    return launcher;
  }

  function release(launcher: Launcher): void {
    if (launcher.alive) {
      idle.push(launcher);
      return;
    }
    all.delete(launcher);
    launcher.ended().catch(() => {}); // the next start of the service removes the folder
  }

  async function spawn(
    file: string,
    args: readonly string[],
    options: SpawnOptions,
  ): Promise<LaunchedProcess> {
    const launcher = await acquire();
    try {
      const launched = launcher.spawn(file, args, options);
      const exit = launched.exit.then((ended): Exit => {
        release(launcher);
        return ended;
      });
      return { ...launched, exit };
    } catch (error) {
      const folderGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (folderGone) launcher.kill();
      // Keep the launcher when file descriptors run out: a new launcher would need more of them.
      release(launcher);
      // The folder was removed, for example by a cleanup of the temporary folder. A new launcher creates a new one.
      if (folderGone) return spawn(file, args, options);
      throw error;
    }
  }

  return {
    spawn,
    async close() {
      closed = true;
      await Promise.allSettled(starting);
      const last = [...all];
      all.clear();
      for (const launcher of last) launcher.kill();
      await Promise.all(last.map((launcher) => launcher.ended()));
    },
  };
}
