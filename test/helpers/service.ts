import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { type Config, loadConfig } from '../../src/config.ts';
import { createHttpServer, type HttpServer } from '../../src/server/http-server.ts';
import { createService, type Service } from '../../src/server/service.ts';
import { makeTempDir, servicesFolder } from './hooks.ts';
import { eventually } from './util.ts';

/** A real server for tests: our own, or with BASE_URL set any that runs already. */

export interface OwnService {
  /** Includes the version segment. */
  readonly base: string;
  stop(): Promise<void>;
  readonly service: Service;
  readonly server: Server;
  readonly http: HttpServer;
  readonly tempDir: string;
  /** What it has logged so far, an object a line. */
  readonly logged: readonly Record<string, unknown>[];
}

const EXTERNAL = process.env.BASE_URL ?? '';
const EXTERNAL_MAGICK = ([6, 7] as const).find((major) => String(major) === process.env.MAGICK_VERSION);

/** For suites that say nothing about settings: they run against any server, which is there from before to after. */
export function useService(): { readonly base: string; readonly magick: 6 | 7 | undefined } {
  let own: OwnService | undefined;
  before(async () => {
    if (!EXTERNAL) own = await startService();
  });
  after(() => own?.stop());
  return {
    get base() {
      return own?.base ?? EXTERNAL.replace(/\/$/, '');
    },
    /** Which ImageMagick it runs. Of a server that is there already, MAGICK_VERSION of the environment says so. */
    get magick() {
      return own?.service.toolchain.magick?.major ?? EXTERNAL_MAGICK;
    },
  };
}

/** A server of the test's own, with the settings it needs; without a rate limit unless it asks for one. */
export async function startService(
  settings: Readonly<Record<string, string>> = {},
  now?: () => number,
): Promise<OwnService> {
  const config = testConfig(settings);
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const service = await createService({ config, version: '0.0.0-test', log, ...(now && { now }) });
  const http = createHttpServer(service.app, config.UPLOAD_TIMEOUT_MS);
  const { server } = http;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    service,
    server,
    http,
    tempDir: config.TEMP_DIR,
    logged,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      // Closing would remove them: what a request leaves must be gone before.
      await eventually(async () => (await requestFolders(config.TEMP_DIR)).length === 0);
      await service.close();
    },
  };
}

let services = 0;
/** A folder that must be empty of files after the tests. */
function freshTempDir(): string {
  services += 1;
  return join(servicesFolder, String(services));
}

export function testConfig(settings: Readonly<Record<string, string>> = {}): Config {
  const { PATH, MAGICK_BIN, RSVG_BIN } = process.env;
  const defaults = { TEMP_DIR: freshTempDir(), RATE_LIMIT_PER_MINUTE: '0' };
  return loadConfig({ PATH, MAGICK_BIN, RSVG_BIN, ...defaults, ...settings });
}

/** The folders of requests under way, of all services that work in `tempDir`. */
export async function requestFolders(tempDir: string): Promise<string[]> {
  const homes = await readdir(tempDir).catch(() => []);
  const requests = await Promise.all(homes.map((home) => readdir(join(tempDir, home))));
  return requests.flat().filter((name) => name.startsWith('request-'));
}

/** For suites in which each test starts a service of its own, in a folder of its own that must be empty in the end. */
export function useOwnServices() {
  let own: OwnService | undefined;
  const current = (): OwnService => {
    if (!own) throw new Error('no service was started');
    return own;
  };
  afterEach(async () => {
    await own?.stop();
    if (own) expect(await readdir(own.tempDir), 'left behind').to.deep.equal([]);
    own = undefined;
  });
  return {
    async start(settings: Readonly<Record<string, string>>): Promise<void> {
      own = await startService({ TEMP_DIR: await makeTempDir('own'), ...settings });
    },
    current,
    openRequests: () => requestFolders(current().tempDir),
    nothingLeft: () => eventually(async () => (await requestFolders(current().tempDir)).length === 0),
  };
}
