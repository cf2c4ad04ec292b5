import { CommandFailed, type Output, type Run } from './command.ts';
import type { Worker } from './worker.ts';

/**
 * Processes that are started before there is work for them. Each serves one client only, so that a broken
 * codec never holds two clients' images; after some images, or anything strange, it makes way for a new one.
 */

export interface Workers {
  /** Runs a command that names its client in a process of that client, and every other in one of its own. */
  readonly run: Run;
  /** How many wait for a client, and how many for more of their client's images. */
  idle(): { readonly ready: number; readonly resting: number };
  /** Ends them all. No command may be under way. */
  close(): Promise<void>;
}

export interface WorkersDeps {
  readonly start: () => Promise<Worker>;
  /** The program that they run, by its path. */
  readonly serves: string;
  /** Runs a command in a process of its own. */
  readonly runAlone: Run;
  /** How many may be at work at once: as many are ready, and as many wait for more of their client's images. */
  readonly slots: number;
  /** Images that one process may do. */
  readonly reuse: number;
  /** How long a process waits for its client's next image, in milliseconds; by default {@link IDLE_MS}. */
  readonly idleMs?: number;
}

/** Somebody who works through a folder comes again sooner. */
const IDLE_MS = 30_000;
/** A photo of 12 megapixels leaves some 30 MiB behind; what has grown beyond this makes way for a new one. */
const MOST_MEMORY_BYTES = 192 * 1024 ** 2;

/** A worker with its client. */
interface Kept {
  readonly worker: Worker;
  readonly client: string;
  done: number;
  retire?: NodeJS.Timeout;
}

export function createWorkers({
  start,
  serves,
  runAlone,
  slots,
  reuse,
  idleMs = IDLE_MS,
}: WorkersDeps): Workers {
  /** Started or starting, and nobody's yet. */
  const ready: Promise<Worker>[] = [];
  /** At rest, the one that has rested longest first. */
  const resting: Kept[] = [];
  const ending = new Set<Promise<unknown>>();
  let closed = false;

  function refill(): void {
    while (!closed && ready.length < slots) {
      const started = start();
      ready.push(started);
      started.catch(() => void ready.splice(ready.indexOf(started), 1));
    }
  }

  async function takeReady(): Promise<Worker> {
    for (let next = ready.shift(); next; next = ready.shift()) {
      const worker = await next;
      if (worker.alive) return worker;
      end(worker);
    }
    return start();
  }

  /** The client's own, or a new one. */
  async function take(client: string): Promise<Kept> {
    const own = resting.findLast((kept) => kept.client === client && kept.worker.alive);
    if (own) {
      resting.splice(resting.indexOf(own), 1);
      clearTimeout(own.retire);
      return own;
    }
    const worker = takeReady();
    refill();
    return { worker: await worker, client, done: 0 };
  }

  function giveBack(kept: Kept, { stderr }: Output): void {
    kept.done += 1;
    const worn = kept.done >= reuse || stderr !== '' || kept.worker.memory() > MOST_MEMORY_BYTES;
    if (worn || closed) {
      end(kept.worker);
      return;
    }
    kept.retire = setTimeout(() => letGo(kept), idleMs).unref();
    resting.push(kept);
    if (resting.length > slots) letGo(resting[0] as Kept);
  }

  function letGo(kept: Kept): void {
    resting.splice(resting.indexOf(kept), 1);
    clearTimeout(kept.retire);
    end(kept.worker);
  }

  function end(worker: Worker): void {
    const ended = worker.end().catch(() => {}); // a folder that cannot be removed is swept at the next start
    ending.add(ended);
    void ended.then(() => ending.delete(ended));
  }

  refill();
  return {
    async run(command) {
      if (command.client === undefined || command.file !== serves) return runAlone(command);
      const started = performance.now();
      const kept = await take(command.client).catch(() => undefined);
      if (!kept) return runAlone(command); // which tells why nothing starts
      try {
        const output = await kept.worker.run(command);
        giveBack(kept, output);
        return output;
      } catch (error) {
        end(kept.worker);
        if (isFinal(error)) throw error;
        const left = Math.max(1, command.timeoutMs - Math.ceil(performance.now() - started));
        return runAlone({ ...command, timeoutMs: left });
      }
    },
    idle: () => ({ ready: ready.length, resting: resting.length }),
    async close() {
      closed = true;
      for (const kept of [...resting]) letGo(kept);
      for (const started of ready.splice(0)) {
        const worker = await started.catch(() => undefined);
        if (worker) end(worker);
      }
      await Promise.all(ending);
    },
  };
}

/**
 * What fails is tried once more by a process of its own, so that no result depends on what the worker did before,
 * or on its folder. That one also says what was wrong: after an error between parentheses, a script dies of a
 * failed assertion (magick-cli.c, 7.1.1) and takes the message with it.
 */
function isFinal(error: unknown): boolean {
  return error instanceof CommandFailed && ['timeout', 'cancelled'].includes(error.reason);
}
