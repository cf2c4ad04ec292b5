/** @module The `serve` command: starts and stops the server, and writes its log. */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import { sanitizeForDisplay } from '../base/text.ts';
import type { ApiKeys } from '../files/api-keys.ts';
import { createHttpServer, type HttpServer } from '../server/http/http-server.ts';
import { createService, type Service } from '../server/service.ts';
import { type Config, listMisspelled } from '../tables/config.ts';
import { StartupError } from '../tables/errors.ts';
import {
  type CliContext,
  endBySignal,
  loadSettings,
  SECOND_SIGNAL_MS,
  withWorkingFolder,
} from './context.ts';

/**
 * Runs `imagemill serve`: loads the settings, starts the service, listens, and drains on a signal
 * of {@link STOP_SIGNALS}. SIGHUP, which is sent when the terminal is closed, does the same, or
 * reads `API_KEYS_FILE` again if it is set.
 *
 * @returns the exit status: 0 after draining, 1 after an error that can be temporary, 2 if this
 *   machine cannot serve
 * @throws {CliError} for invalid settings
 */
export async function serve({ env, version }: CliContext): Promise<number> {
  const config = withWorkingFolder(loadSettings(env), env);
  const isPretty = config.LOG_FORMAT === 'auto' ? process.stdout.isTTY : config.LOG_FORMAT === 'pretty';
  const stream = createLogStream(isPretty ? formatForPeople : (line) => line);
  const log = pino({ level: config.LOG_LEVEL }, stream);
  const readsKeys = config.API_KEYS_FILE !== undefined;
  const signals = listenForSignals(readsKeys ? STOP_SIGNALS : [...STOP_SIGNALS, 'SIGHUP']);
  if (readsKeys) process.on('SIGHUP', () => void (service && reloadKeys(service.apiKeys, log)));
  for (const warning of listMisspelled(env)) log.warn(warning);
  let service: Service | undefined;
  let http: HttpServer | undefined;
  // A start that waits, such as for the file of the keys, has nothing to drain.
  void signals.second.then((signal) => http ?? endBySignal(signal));
  try {
    service = await createService({
      config,
      version,
      log,
      collectProcessMetrics: true,
      droppedLogLines: () => stream.dropped,
    });
    http = createHttpServer(service, config);
    await listen(http.server, config);
    reportStart({ log, version, access: config.ACCESS }, http.server, service);
    log.info({ signal: await signals.first }, 'shutting down');
    service.drain();
    const cutOff = signals.second.then((signal) =>
      log.warn({ signal }, 'second signal: closing all connections'),
    );
    await drain(http, config.SHUTDOWN_GRACE_MS, cutOff);
    log.info('shutdown complete');
    return 0;
  } catch (error) {
    if (error instanceof StartupError) log.fatal(error.message);
    else log.fatal({ err: error }, 'service failed');
    http?.server.closeAllConnections();
    http?.server.close();
    return error instanceof StartupError && !error.isTemporary ? 2 : 1;
  } finally {
    await service?.close();
  }
}

/** A server of this process on a free port of the loopback interface. */
export type LocalServer = Awaited<ReturnType<typeof startLocalServer>>;

/**
 * Starts a server that no other machine can reach. The caller must close it.
 *
 * @throws {StartupError} see {@link createService}
 */
export async function startLocalServer(config: Config, log: Logger, version: string) {
  const service = await createService({ config, version, log });
  const { server } = createHttpServer(service, config);
  const close = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await service.close();
  };
  try {
    await listen(server, { ...config, HOST: '127.0.0.1', PORT: 0 });
  } catch (error) {
    await close();
    throw error;
  }
  const { toolchain, capabilities } = service;
  return { port: (server.address() as AddressInfo).port, toolchain, capabilities, close };
}

/** Why a server cannot listen, in plain words, by error code (errno(3)). */
const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses this port. Stop it, or set PORT to another port',
  EACCES: 'this user may not use this port. Set PORT to 1024 or above',
  EADDRNOTAVAIL:
    'this machine does not have this address. Set HOST to one of its addresses, or to 0.0.0.0 for all',
  ENOTFOUND: 'this host name has no address. Set HOST to an address of this machine, or to 0.0.0.0 for all',
};

/** @throws {StartupError} that is temporary: the program that uses the port may end */
async function listen(server: Server, { HOST, PORT }: Config): Promise<void> {
  server.listen(PORT, HOST);
  try {
    await once(server, 'listening');
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException;
    const address = `HOST=${HOST} PORT=${PORT}`;
    const problem = `Cannot listen on ${address}: ${LISTEN_ERRORS[code] ?? message}.`;
    throw new StartupError(problem, { cause, isTemporary: true });
  }
}

const ALL_ADDRESSES = ['0.0.0.0', '::'];

function reportStart(
  { log, version, access }: { log: Logger; version: string; access: Config['ACCESS'] },
  server: Server,
  { toolchain, capabilities, layers }: Service,
): void {
  const tools = Object.entries(toolchain).map(([name, tool]) => [
    name,
    tool ? `${tool.version} ${tool.path}` : 'none',
  ]);
  const { inputs, outputs } = capabilities;
  const about = { version, access, node: process.version };
  log.info({ ...about, ...Object.fromEntries(tools), inputs, outputs, sandbox: layers }, 'startup');
  const { address, port } = server.address() as AddressInfo;
  const host = address.includes(':') ? `[${address}]` : address;
  // A browser on this machine reaches a server that listens on all addresses as localhost.
  const url = `http://${ALL_ADDRESSES.includes(address) ? 'localhost' : host}:${port}`;
  log.info({ url }, `listening on http://${host}:${port}`);
}

/** Reads the API keys again. If the file is wrong, the old keys stay. */
async function reloadKeys(keys: ApiKeys, log: Logger): Promise<void> {
  try {
    await keys.reload();
    log.info({ keys: keys.size() }, 'API keys were read again');
  } catch (error) {
    log.error(`${(error as Error).message}. The keys stay as they were.`);
  }
}

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/**
 * Listens for the signals that start the shutdown. The listeners are never removed: without a
 * listener, a signal would kill the process and its tools before it has drained.
 */
function listenForSignals(names: readonly NodeJS.Signals[]) {
  const [first, second] = [Promise.withResolvers<NodeJS.Signals>(), Promise.withResolvers<NodeJS.Signals>()];
  let firstAt: number | undefined;
  const receive = (signal: NodeJS.Signals): void => {
    first.resolve(signal);
    firstAt ??= performance.now();
    if (performance.now() - firstAt >= SECOND_SIGNAL_MS) second.resolve(signal);
  };
  for (const name of names) process.on(name, receive);
  /** `second` is at least {@link SECOND_SIGNAL_MS} after the first. */
  return { first: first.promise, second: second.promise };
}

/**
 * Waits for requests in progress to finish. After `graceMs` milliseconds, or when `cutOff`
 * resolves, closes the remaining connections, which kills their tools.
 */
async function drain(
  { server, closeIdle }: HttpServer,
  graceMs: number,
  cutOff: Promise<void>,
): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // Clients keep connections open after a response, or open them before their first request.
  closeIdle();
  const idle = setInterval(closeIdle, 50);
  const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
  cutOff.then(() => server.closeAllConnections());
  await closed;
  clearInterval(idle);
  clearTimeout(deadline);
}

const LINE_BREAK = 0x0a;

/** Creates a destination for pino: standard output. `format` formats a line with its line break. */
function createLogStream(format: (line: string) => string) {
  let dropped = 0;
  let isTruncated = false;
  return {
    /** Writes a line including its line break, or drops it. */
    write(json: string): void {
      const line = format(json);
      // A full disk may have stored the start of a line. A line break separates it from the next.
      const bytes = Buffer.from(isTruncated ? `\n${line}` : line);
      let written = 0;
      try {
        while (written < bytes.length) written += writeSync(process.stdout.fd, bytes, written);
      } catch {
        dropped += 1;
      }
      if (written > 0) isTruncated = bytes[written - 1] !== LINE_BREAK;
    },
    /** Number of lines dropped or truncated since the start. */
    get dropped(): number {
      return dropped;
    },
  };
}

interface LogLine {
  /** 30 info, 40 warn, 50 error, 60 fatal: https://getpino.io/#/docs/api?id=loggerlevels-object */
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string };
  readonly [field: string]: unknown;
}

/** Sentences for messages that have another meaning, or more of it, for people. */
const SENTENCES: Readonly<Record<string, (line: LogLine) => string>> = {
  startup: ({ version, access, magick }) => `imagemill ${version}, ${access}, ImageMagick ${magick}`,
  listening: ({ url }) => `Open ${url} in a browser. To stop the server, press Ctrl-C.`,
  'request completed': ({ time, method, route, status, outcome, ms }) => {
    const at = new Date(time).toLocaleTimeString('sv'); // the Swedish format is HH:MM:SS
    return `${at} ${method} ${route} ${status}${outcome === 'OK' ? '' : ` ${outcome}`} ${ms} ms`;
  },
  'shutting down': () =>
    'Stopping when all requests are answered. To close their connections at once, press Ctrl-C again.',
  'shutdown complete': () => 'Stopped.',
};

const PREFIXES: Readonly<Record<number, string>> = { 40: 'Warning: ', 50: 'Error: ', 60: 'imagemill: ' };

/** Maximum length of a line in UTF-16 code units. */
const MAX_LINE_LENGTH = 2000;

/** Formats a line of the log for people at a terminal. */
function formatForPeople(json: string): string {
  const line = JSON.parse(json) as LogLine;
  const { level, msg = '', err } = line;
  const cause = err?.message === undefined ? '' : `: ${err.message}`;
  const sentence = SENTENCES[msg.startsWith('listening on') ? 'listening' : msg]?.(line) ?? msg;
  const text = `${PREFIXES[level] ?? ''}${sentence}${cause}`;
  return `${sanitizeForDisplay(text, MAX_LINE_LENGTH)}\n`;
}
