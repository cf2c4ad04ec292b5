/**
 * @module Module for `node --import`: on exit, writes the 99th percentile of the event loop delay in ms to the file in
 * STRESS_LOOP_FILE.
 */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const path = process.env.STRESS_LOOP_FILE;
if (path) {
  const histogram = monitorEventLoopDelay({ resolution: 10 });
  histogram.enable();
  process.on('exit', () => writeFileSync(path, String(histogram.percentile(99) / 1e6)));
}
