import type { Isolation } from './isolation.ts';
import { type Exit, type LaunchedProcess, type Launcher, startLauncher } from './launcher.ts';
import type { SpawnOptions } from './script.ts';

/** A pool of launchers: as many as programs were ever running at once. */
export interface Launchers {
  /**
   * Starts a program by an idle launcher, or by a new one.
   *
   * @throws Error with the code of errno(3) when the machine has no process or no file left
   */
  spawn(file: string, args: readonly string[], options: SpawnOptions): Promise<LaunchedProcess>;
  /** Kills all launchers and their programs, and removes their folders. */
  close(): Promise<void>;
}

/** @param home returns the folder that the launchers make their pipes in */
export function createLaunchers(home: () => Promise<string>, isolation: Isolation = 'none'): Launchers {
  const idle: Launcher[] = [];
  const all = new Set<Launcher>();
  const starting = new Set<Promise<Launcher>>();
  let closed = false;

  async function take(): Promise<Launcher> {
    for (let launcher = idle.pop(); launcher; launcher = idle.pop()) {
      if (launcher.alive) return launcher;
      giveBack(launcher);
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

  function giveBack(launcher: Launcher): void {
    if (launcher.alive) {
      idle.push(launcher);
      return;
    }
    all.delete(launcher);
    launcher.ended().catch(() => {}); // a folder that cannot be removed is swept at the next start
  }

  async function spawn(
    file: string,
    args: readonly string[],
    options: SpawnOptions,
  ): Promise<LaunchedProcess> {
    const launcher = await take();
    try {
      const launched = launcher.spawn(file, args, options);
      const exit = launched.exit.then((ended): Exit => {
        giveBack(launcher);
        return ended;
      });
      return { ...launched, exit };
    } catch (error) {
      const folderGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (folderGone) launcher.kill();
      // Where files have run out, a new launcher would need more of them than this one has.
      giveBack(launcher);
      // Something has emptied the temporary folder. A new launcher has a new folder.
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
