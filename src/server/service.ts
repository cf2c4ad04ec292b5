/** @module Creates the service from the settings: an app that is ready to listen. */
import { createConversionEngine } from '../conversion/engine.ts';
import type { Capabilities } from '../conversion/limits/capabilities.ts';
import { createHealthCheck } from '../conversion/limits/health-check.ts';
import { NO_PRESETS, type Presets } from '../conversion/request/forms.ts';
import { openApiKeys } from '../files/api-keys.ts';
import { WEB_APP_DIR } from '../folders.ts';
import type { Config } from '../tables/config.ts';
import { type AppDeps, createApp } from './app.ts';
import { Clients } from './clients.ts';
import { createMetrics } from './metrics.ts';
import type { SharedStore } from './redis-store.ts';
import { loadWebApp } from './routes/web-app.ts';

/** A running service. The caller listens for connections. */
export type Service = Awaited<ReturnType<typeof createService>>;

export interface ServiceOptions extends Pick<AppDeps, 'config' | 'version' | 'log' | 'now'> {
  /** See {@link createMetrics}. Default: false, because a process may run several services. */
  readonly collectProcessMetrics?: boolean;
  /** Returns the number of log lines dropped since the start. */
  readonly droppedLogLines?: () => number;
}

/**
 * Starts everything except the HTTP server. If it throws, it first stops everything that it has
 * started.
 *
 * @throws {StartupError} see {@link openApiKeys} and {@link createConversionEngine}
 */
export async function createService({
  config,
  version,
  log,
  now,
  collectProcessMetrics = false,
  droppedLogLines = () => 0,
}: ServiceOptions) {
  const apiKeys = await openApiKeys(config.API_KEYS_FILE);
  const metrics = createMetrics({
    version,
    collectProcessMetrics,
    readGauges: async () => ({
      ...stats(),
      reservedBytes: workspaces.reserved(),
      freeBytes: await workspaces.free().catch(() => undefined),
      droppedLogLines: droppedLogLines(),
    }),
  });
  const engine = await createConversionEngine(config, log, metrics);
  const { toolchain, capabilities, layers, convert, workspaces, stats } = engine;
  let sharedStore: SharedStore | undefined;
  const close = async (): Promise<void> => {
    sharedStore?.close();
    await engine.close();
  };
  try {
    if (config.REDIS_URL !== undefined) {
      // The Redis client takes 0.3 s of CPU time and 5 MB, and most instances do not need it.
      const { createSharedStore } = await import('./redis-store.ts');
      sharedStore = await createSharedStore({
        url: config.REDIS_URL,
        log,
        onShared: metrics.rateLimitShared,
      });
    }
    const presets = await loadPresets(config, capabilities);
    const webApp = loadWebApp(WEB_APP_DIR);
    if (!webApp) log.warn('the web page is not built: run npm run build');
    const clients = new Clients(config, apiKeys);
    const draining = new AbortController();
    const app = createApp({
      ...engine,
      config,
      version,
      log,
      presets,
      clients,
      metrics,
      sharedStore,
      webApp,
      now,
      isHealthy: createHealthCheck(convert, workspaces),
      draining: draining.signal,
    });
    /** Rejects new requests from now on. */
    const drain = (): void => draining.abort();
    return { app, clients, toolchain, capabilities, layers, apiKeys, drain, close };
  } catch (error) {
    await close(); // running fork servers would keep the process alive
    throw error;
  }
}

/** Reads the presets. Loads the YAML parser only if there is a file. */
async function loadPresets(config: Config, { inputs, outputs }: Capabilities): Promise<Presets> {
  const { PRESETS_FILE: path } = config;
  if (path === undefined) return NO_PRESETS;
  const { openWatermarks, readPresets } = await import('../conversion/input/presets-file.ts');
  return openWatermarks(readPresets(path, outputs, config), inputs, ['PRESETS_FILE', path]);
}
