/**
 * @module Module for `node --import`: on SIGUSR2, writes a {@link Probe} to the file in PROBE_FILE,
 * and starts again. With `--expose-gc`, it collects garbage first.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Measurements since the last signal. */
export interface Probe {
  /**
   * Longest turn of the event loop, in ms: CPU time of the main thread between two timers, so that
   * other processes on a busy machine do not count.
   */
  readonly longestTurnMs: number;
  /**
   * Memory in use by JavaScript objects and buffers, in bytes. The resident memory also has what
   * malloc keeps of the memory of garbage, which differs by tens of megabytes between two equal
   * runs.
   */
  readonly usedBytes: number;
}

const path = process.env.PROBE_FILE as string;

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

if (isMainThread) {
  let before = cpuMs();
  let longestTurnMs = 0;
  const endTurn = (): void => {
    const now = cpuMs();
    longestTurnMs = Math.max(longestTurnMs, now - before);
    before = now;
  };
  setInterval(endTurn, 1).unref();

  process.on('SIGUSR2', () => {
    endTurn();
    // The second collection waits until buffers that the first one found are free.
    for (let count = 0; count < 2; count += 1)
      globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const { heapUsed, external } = process.memoryUsage();
    const probe: Probe = { longestTurnMs, usedBytes: heapUsed + external };
    writeFileSync(`${path}.new`, JSON.stringify(probe));
    renameSync(`${path}.new`, path);
    longestTurnMs = 0;
    before = cpuMs();
  });
}
