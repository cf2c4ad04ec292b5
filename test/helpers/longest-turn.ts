import { writeFileSync } from 'node:fs';

/**
 * Loaded into a server with --import: measures the longest turn of the event loop, as processor time of the main thread
 * between two timers, so that other processes of a busy machine do not count. On SIGUSR2 it writes the milliseconds to
 * the file named in LONGEST_TURN_FILE, and begins anew.
 */
const path = process.env.LONGEST_TURN_FILE as string;

const used = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let before = used();
let longest = 0;
setInterval(() => {
  const now = used();
  longest = Math.max(longest, now - before);
  before = now;
}, 1).unref();

process.on('SIGUSR2', () => {
  writeFileSync(path, String(longest));
  longest = 0;
});
