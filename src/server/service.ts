import { fileURLToPath } from 'node:url';
import type { Express } from 'express';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { type ConversionEngine, createConversionEngine } from '../conversion/engine.ts';
import { createHealthCheck } from '../conversion/health-check.ts';
import { createApp } from './app.ts';
import { createMetrics } from './metrics.ts';
import { createSharedStore, type SharedStore } from './redis-store.ts';
import { loadWebApp } from './routes/web-app.ts';

/** The parts put together: settings in, an app that is ready to listen out. */

const PAGE = fileURLToPath(new URL('../../dist/web', import.meta.url));

export interface Service extends Pick<ConversionEngine, 'toolchain' | 'capabilities' | 'layers' | 'close'> {
  readonly app: Express;
  /** From now on new requests are refused. */
  drain(): void;
}

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  /** See {@link createApp}. */
  readonly now?: () => number;
  /** See {@link createMetrics}; by default there may be others in this process. */
  readonly collectProcessMetrics?: boolean;
  /** How many lines of the log could not be written so far. */
  readonly droppedLogLines?: () => number;
}

/**
 * Starts everything but the listener. Whatever it throws, nothing that it started is left.
 *
 * @throws Unusable as {@link createConversionEngine} does
 */
export async function createService({
  config,
  version,
  log,
  now,
  collectProcessMetrics: wholeProcess = false,
  droppedLogLines = () => 0,
}: ServiceOptions): Promise<Service> {
  const metrics = createMetrics({
    version,
    collectProcessMetrics: wholeProcess,
    readGauges: async () => ({
      ...load(),
      reservedBytes: workspaces.reserved(),
      freeBytes: await workspaces.free(),
      droppedLogLines: droppedLogLines(),
    }),
  });
  const mill = await createConversionEngine(config, log, {
    ...metrics,
    // The trials of the probe are nobody's conversions.
    conversion: (conversion) => conversion.client !== undefined && metrics.conversion(conversion),
  });
  const { toolchain, capabilities, layers, convert, workspaces, stats: load } = mill;
  let counters: SharedStore | undefined;
  const close = async (): Promise<void> => {
    counters?.close();
    await mill.close();
  };
  try {
    if (config.REDIS_URL !== undefined)
      counters = await createSharedStore({ url: config.REDIS_URL, log, onShared: metrics.rateLimitShared });
    const page = loadWebApp(PAGE);
    if (!page) log.warn('the web page is not built: npm run build');
    let draining = false;
    const app = createApp({
      ...{
        config,
        version,
        log,
        capabilities,
        sandboxLayers: layers,
        convert,
        workspaces,
        metrics,
        sharedStore: counters,
        page,
      },
      isHealthy: createHealthCheck(convert, workspaces),
      draining: () => draining,
      ...(now && { now }),
    });
    const drain = (): void => {
      draining = true;
    };
    return { app, toolchain, capabilities, layers, drain, close };
  } catch (error) {
    await close(); // its shells and workers would keep the process alive
    throw error;
  }
}
