/** @module Health check that converts a tiny image. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Workspaces } from '../../files/workspace.ts';
import { ONE_PIXEL } from '../../process/policy.ts';
import { isDiskFull, ServiceError } from '../../tables/errors.ts';
import type { OutputType } from '../../tables/formats.ts';
import type { Convert } from '../context.ts';
import { INPUT_FILE } from '../plan/types.ts';
import { DEFAULT_OPTIONS } from '../request/checks.ts';

type HealthWorkspaces = Pick<Workspaces, 'use' | 'hasSpace'>;

/** Time after which a result is out of date, in milliseconds. */
const CACHE_TTL_MS = 10_000;
/** Time after which a failure is out of date, in ms. Short, so that recovery shows at once. */
const FAILURE_TTL_MS = 1_000;

/**
 * Creates a function that returns whether conversions work, as last tried. If that is out of date,
 * it tries again in the background: once in 10 s, or in 1 s while conversions fail. `now` is a
 * monotonic clock in ms.
 */
export function createHealthCheck(
  convert: Convert,
  workspaces: HealthWorkspaces,
  now: () => number = () => performance.now(),
): () => Promise<boolean> {
  let lastResult: Promise<boolean> | undefined;
  let triedAt = 0;
  let ttlMs = CACHE_TTL_MS;
  return () => {
    if (lastResult === undefined || now() - triedAt >= ttlMs) {
      const trial = works(convert, workspaces);
      triedAt = now();
      ttlMs = CACHE_TTL_MS; // one trial at a time, unless it takes longer than that
      void trial.then((isHealthy) => {
        if (!isHealthy) ttlMs = FAILURE_TTL_MS;
      });
      const before = lastResult;
      lastResult = trial;
      return before ?? trial;
    }
    return lastResult;
  };
}

/** Converts a PNG of one pixel, removes the result, and returns the time in ms without waiting. */
export function convertOnePixel(
  { convert, workspaces }: { convert: Convert; workspaces: Pick<Workspaces, 'use'> },
  format: OutputType,
): Promise<number> {
  return workspaces.use({}, async (workspace) => {
    const folder = await workspace.folder('image');
    await writeFile(join(folder, INPUT_FILE), ONE_PIXEL);
    const input = { folder, type: 'png', label: 'The pixel' } as const;
    const { signal } = new AbortController();
    return (await convert(input, { ...DEFAULT_OPTIONS, format }, signal)).convertedMs;
  });
}

async function works(convert: Convert, workspaces: HealthWorkspaces): Promise<boolean> {
  try {
    await convertOnePixel({ convert, workspaces }, 'png');
    return true;
  } catch (error) {
    const code = error instanceof ServiceError ? error.code : undefined;
    if (code === 'QUEUE_FULL' || code === 'OVERLOADED') return true; // overloaded, but healthy
    // A disk that only the files of current requests fill is healthy, too.
    if (code !== 'DISK_FULL' && !isDiskFull(error)) return false;
    return workspaces.hasSpace().catch(() => false); // a rejection in the background would end the process
  }
}
