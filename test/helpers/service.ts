/** @module Starts services for tests, or uses a running one with BASE_URL. */

import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { type ConversionEngine, createConversionEngine } from '../../src/conversion/engine.ts';
import { createHttpServer, type HttpServer } from '../../src/server/http/http-server.ts';
import { createService, type Service } from '../../src/server/service.ts';
import { type Config, loadConfig } from '../../src/tables/config.ts';
import { makeTempDir, servicesFolder } from './hooks.ts';
import { TEST_SETTINGS } from './process.ts';
import { eventually } from './util.ts';

/** A service in the process of the test. */
export interface OwnService {
  /** Base URL of the API, including the version. */
  readonly base: string;
  stop(): Promise<void>;
  /** Stops the service at the end of a block, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  readonly service: Service;
  readonly server: Server;
  readonly http: HttpServer;
  readonly tempDir: string;
  /** Log records so far. */
  readonly logged: Record<string, unknown>[];
}

const EXTERNAL = process.env.BASE_URL ?? '';
const EXTERNAL_MAGICK = ([6, 7] as const).find((major) => String(major) === process.env.MAGICK_VERSION);

/**
 * Provides a service from `before` to `after` for suites that do not depend on settings and can run
 * against any server.
 */
export function useService(): { readonly base: string; readonly magick: 6 | 7 | undefined } {
  if (EXTERNAL) return { base: EXTERNAL.replace(/\/$/, ''), magick: EXTERNAL_MAGICK };
  const own = useServiceWith();
  return {
    get base() {
      return own.base;
    },
    /**
     * Major version of ImageMagick. For a server at BASE_URL, the environment variable
     * MAGICK_VERSION.
     */
    get magick() {
      return own.service.toolchain.magick?.major;
    },
  };
}

/** Starts a service with the given settings. There is no rate limit by default. */
export async function startService(
  settings: Readonly<Record<string, string>> = {},
  now?: () => number,
): Promise<OwnService> {
  const config = testConfig(settings);
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const service = await createService({ config, version: '0.0.0-test', log, ...(now && { now }) });
  const http = createHttpServer(service, config);
  const { server } = http;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    // Check before closing, which would remove the folders of requests.
    await eventually(async () => (await requestFolders(config.TEMP_DIR)).length === 0);
    await service.close();
  };
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    service,
    server,
    http,
    tempDir: config.TEMP_DIR,
    logged,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

let services = 0;
/** Returns a new folder that must be empty after the tests. */
function freshTempDir(): string {
  services += 1;
  return join(servicesFolder, String(services));
}

/**
 * Loads the configuration for tests: tools of the environment, a new TEMP_DIR and
 * {@link TEST_SETTINGS}.
 */
export function testConfig(settings: Readonly<Record<string, string>> = {}): Config {
  const { PATH, MAGICK_BIN, RSVG_BIN } = process.env;
  const defaults = { TEMP_DIR: freshTempDir(), ...TEST_SETTINGS };
  return loadConfig({ PATH, MAGICK_BIN, RSVG_BIN, ...defaults, ...settings });
}

/**
 * Creates a conversion engine with the given settings, which logs nothing. `await using` closes it.
 */
export async function startEngine(
  settings: Readonly<Record<string, string>> = {},
): Promise<ConversionEngine & AsyncDisposable> {
  const engine = await createConversionEngine(testConfig(settings), pino({ level: 'silent' }));
  return Object.assign(engine, { [Symbol.asyncDispose]: () => engine.close() });
}

/** Provides what `start` returns from `before` to `after`. */
function useStarted<T extends object>(start: () => Promise<T>, stop: (started: T) => Promise<void>): T {
  let started: T | undefined;
  before(async () => {
    started = await start();
  });
  after(() => started && stop(started));
  return new Proxy({} as T, { get: (_, name) => Reflect.get(started as T, name) });
}

/** Provides a service with these settings to the tests of a suite. */
export const useServiceWith = (...args: Parameters<typeof startService>): OwnService =>
  useStarted(
    () => startService(...args),
    (service) => service.stop(),
  );

/** Provides a conversion engine with these settings to the tests of a suite. */
export const useEngine = (...args: Parameters<typeof startEngine>): ConversionEngine =>
  useStarted(
    () => startEngine(...args),
    (engine) => engine.close(),
  );

/** Lists the folders of requests in progress, of all services that use `tempDir`. */
export async function requestFolders(tempDir: string): Promise<string[]> {
  const serviceFolders = await readdir(tempDir).catch(() => []);
  const requests = await Promise.all(
    serviceFolders.map((serviceFolder) => readdir(join(tempDir, serviceFolder))),
  );
  return requests.flat().filter((name) => name.startsWith('request-'));
}

/**
 * Services that the tests of a suite start with settings of their own. Their folders must be empty
 * after they stop.
 */
export function useOwnServices() {
  const shared = new Map<string, OwnService>();
  let own: OwnService | undefined;
  const current = (): OwnService => {
    if (!own) throw new Error('no service was started');
    return own;
  };
  const openRequests = () => requestFolders(current().tempDir);
  const nothingLeft = () => eventually(async () => (await openRequests()).length === 0);
  const startInOwnFolder = async (settings: Readonly<Record<string, string>>) =>
    startService({ TEMP_DIR: await makeTempDir('own'), ...settings });
  const stop = async (service: OwnService): Promise<void> => {
    await service.stop();
    expect(await readdir(service.tempDir), 'left behind').to.deep.equal([]);
  };
  afterEach(async () => {
    if (own && [...shared.values()].includes(own)) await nothingLeft();
    else if (own) await stop(own);
    own = undefined;
  });
  after(async () => {
    for (const service of shared.values()) await stop(service);
    shared.clear();
  });
  return {
    /** Starts a service for one test. */
    async start(settings: Readonly<Record<string, string>>): Promise<void> {
      own = await startInOwnFolder(settings);
    },
    /**
     * Provides a service that all tests of the suite with equal settings share: a start takes 0.3 s
     * of CPU time. Its log starts empty in each test. For tests that do not depend on what the
     * service did before.
     */
    async startShared(settings: Readonly<Record<string, string>>): Promise<void> {
      const key = JSON.stringify(settings);
      own = shared.get(key) ?? (await startInOwnFolder(settings));
      own.logged.length = 0;
      shared.set(key, own);
    },
    current,
    openRequests,
    nothingLeft,
  };
}
