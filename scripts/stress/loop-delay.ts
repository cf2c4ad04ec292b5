import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Loaded into the server with --import: leaves the 99th percentile of the event loop's delay, in ms, in a file. */
const path = process.env.TORTURE_LOOP_FILE;
if (path) {
  const histogram = monitorEventLoopDelay({ resolution: 10 });
  histogram.enable();
  process.on('exit', () => writeFileSync(path, String(histogram.percentile(99) / 1e6)));
}
