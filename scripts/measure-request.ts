/**
 * @module Lists the files of `src/` whose functions run in a second `POST /convert` of a JPEG to WebP, and how often each
 * function is called, by V8's precise coverage: `node scripts/measure-request.ts [--functions] [--settle-ms 3000]`. Fails unless the
 * conversion was planned exactly once.
 */
import { openAsBlob } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mochaGlobalTeardown } from '../test/helpers/hooks.ts';
import { startService } from '../test/helpers/service.ts';

const { values: flags } = parseArgs({
  options: { functions: { type: 'boolean' }, 'settle-ms': { type: 'string', default: '3000' } },
});
/** Time for work after a request to end, such as the start of another process, in ms. */
const settleMs = Number(flags['settle-ms']);

const root = fileURLToPath(new URL('../src/', import.meta.url));
const image = await openAsBlob(fileURLToPath(new URL('../fixtures/images/scene.jpg', import.meta.url)));
const service = await startService({ CONCURRENCY: '2' });

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
try {
  await wait(settleMs);
  await convert();
  await wait(settleMs);
  await session.post('Profiler.takePreciseCoverage'); // resets the counts
  await convert();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  report(result);
} finally {
  await service.stop();
  mochaGlobalTeardown();
}

async function convert(): Promise<void> {
  const form = new FormData();
  form.append('format', 'webp');
  form.append('width', '300');
  form.append('file', image, 'scene.jpg');
  const response = await fetch(`${service.base}/convert`, { method: 'POST', body: form });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

function report(scripts: readonly Profiler.ScriptCoverage[]): void {
  const files = scripts
    .filter((script) => script.url.startsWith(`file://${root}`))
    .map(({ url, functions }) => ({
      name: fileURLToPath(url).slice(root.length),
      calls: functions
        .map(({ functionName, ranges: [range] }) => ({ name: functionName, count: range?.count ?? 0 }))
        .filter(({ count }) => count > 0),
    }))
    .filter(({ calls }) => calls.length > 0)
    .sort((one, other) => one.name.localeCompare(other.name));
  for (const { name, calls } of files) {
    console.log(`${name}: ${calls.length} functions, ${sum(calls)} calls`);
    if (flags.functions)
      for (const call of calls)
        console.log(`  ${String(call.count).padStart(4)} ${call.name || '(anonymous)'}`);
  }
  const all = files.flatMap(({ calls }) => calls);
  console.log(`${files.length} files, ${all.length} functions, ${sum(all)} calls`);
  const planner = files.find(({ name }) => name === 'conversion/plan/index.ts')?.calls ?? [];
  const plans = sum(planner.filter(({ name }) => name === 'plan'));
  console.log(`planned ${plans} times`);
  if (plans !== 1) process.exitCode = 1;
}

function sum(calls: readonly { count: number }[]): number {
  return calls.reduce((total, { count }) => total + count, 0);
}
