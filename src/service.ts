import { fileURLToPath } from 'node:url';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { createApp } from './app.ts';
import type { Config } from './config.ts';
import { createTrial } from './convert/trial.ts';
import { findPage } from './http/page-route.ts';
import { connectCounters } from './http/shared-counters.ts';
import { createMetrics } from './metrics.ts';
import { createMill, type Mill } from './mill.ts';

/** The parts put together: settings in, an app that is ready to listen out. */

const PAGE = fileURLToPath(new URL('../dist/web', import.meta.url));

export interface Service extends Pick<Mill, 'toolchain' | 'capabilities' | 'layers' | 'close'> {
  readonly app: Express;
  /** From now on new requests are refused. */
  drain(): void;
}

export interface ServiceParts {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  /** See {@link createApp}. */
  readonly now?: () => number;
  /** See {@link createMetrics}; by default there may be others in this process. */
  readonly wholeProcess?: boolean;
}

/** @throws Unusable as {@link createMill} does */
export async function createService({
  config,
  version,
  log,
  now,
  wholeProcess = false,
}: ServiceParts): Promise<Service> {
  const metrics = createMetrics({
    version,
    wholeProcess,
    levels: async () => ({
      ...load(),
      reservedBytes: workspaces.reserved(),
      freeBytes: await workspaces.free(),
    }),
  });
  const { toolchain, capabilities, layers, convert, workspaces, load, close } = await createMill(
    config,
    log,
    {
      ...metrics,
      // The trials of the probe are nobody's conversions.
      conversion: (conversion) => conversion.client !== undefined && metrics.conversion(conversion),
    },
  );
  const counters =
    config.REDIS_URL === undefined
      ? undefined
      : await connectCounters({ url: config.REDIS_URL, log, onShared: metrics.countersShared });
  const page = findPage(PAGE);
  if (!page) log.warn('the web page is not built: npm run build');
  let draining = false;
  const app = createApp({
    ...{ config, version, log, capabilities, layers, convert, workspaces, metrics, counters, page },
    works: createTrial(convert, workspaces),
    draining: () => draining,
    ...(now && { now }),
  });
  return {
    app,
    toolchain,
    capabilities,
    layers,
    drain: () => {
      draining = true;
    },
    async close() {
      counters?.close();
      await close();
    },
  };
}
