import { type Shell, type Started, startShell } from './shell.ts';

/** The shells that wait for something to start: as many as programs were ever running at once. */

export interface Shells {
  /**
   * Has a shell start a program; see {@link Shell.start}.
   *
   * @throws Error when this machine has no process, or no file, left for it
   */
  start(text: string, stdin: string): Promise<Started & { readonly shell: Shell }>;
  /** One whose program has ended, or that has been killed. */
  giveBack(shell: Shell): void;
  /** Ends them all, and what they have started. */
  close(): Promise<void>;
}

/** @param home gives the folder that their pipes are made in */
export function createShells(home: () => Promise<string>): Shells {
  const idle: Shell[] = [];
  const all = new Set<Shell>();
  const starting = new Set<Promise<Shell>>();
  let closed = false;

  async function take(): Promise<Shell> {
    for (let shell = idle.pop(); shell; shell = idle.pop()) {
      if (shell.alive) return shell;
      giveBack(shell);
    }
    if (closed) throw new Error('nothing is started any more');
    const begun = begin().finally(() => starting.delete(begun));
    starting.add(begun);
    return begun;
  }

  async function begin(): Promise<Shell> {
    const shell = await startShell(await home());
    all.add(shell);
    return shell;
  }

  function giveBack(shell: Shell): void {
    if (shell.alive) {
      idle.push(shell);
      return;
    }
    all.delete(shell);
    shell.gone().catch(() => {}); // a folder that cannot be removed is swept at the next start
  }

  return {
    async start(text, stdin) {
      const shell = await take();
      try {
        return { shell, ...shell.start(text, stdin) };
      } catch (error) {
        const tidied = (error as NodeJS.ErrnoException).code === 'ENOENT';
        if (tidied) shell.kill();
        // Where files have run out, a new one would need more of them than this one has.
        giveBack(shell);
        // Someone has tidied up the temp folder: a new one has a new folder.
        if (tidied) return this.start(text, stdin);
        throw error;
      }
    },
    giveBack,
    async close() {
      closed = true;
      await Promise.allSettled(starting);
      const last = [...all];
      all.clear();
      for (const shell of last) shell.kill();
      await Promise.all(last.map((shell) => shell.gone()));
    },
  };
}
