/**
 * @module Module for `node --import`: measures the longest turn of the event loop as CPU time of the main thread
 * between two timers, so that other processes on a busy machine do not count. On SIGUSR2, writes it in ms to the file
 * in LONGEST_TURN_FILE and starts again.
 */
import { writeFileSync } from 'node:fs';

const path = process.env.LONGEST_TURN_FILE as string;

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let before = cpuMs();
let longest = 0;
setInterval(() => {
  const now = cpuMs();
  longest = Math.max(longest, now - before);
  before = now;
}, 1).unref();

process.on('SIGUSR2', () => {
  writeFileSync(path, String(longest));
  longest = 0;
});
