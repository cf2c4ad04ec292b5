/**
 * @module Rate-limit counters in Redis or Valkey, shared by several instances. While the server is
 * unavailable, each instance continues with its own counts, and only the requests that wait at that
 * moment notice the outage.
 */
import type { Options, Store } from 'express-rate-limit';
import type { Logger } from 'pino';
import { RedisStore } from 'rate-limit-redis';
import {
  CONNECT_TIMEOUT_MS,
  createRedisClient,
  type RedisConnection,
  withTimeout,
} from '../base/redis-client.ts';
import { WINDOW_MS } from './rate-limit.ts';

/** Rate-limit counters that several instances share. */
export type SharedStore = Awaited<ReturnType<typeof createSharedStore>>;

export interface SharedStoreOptions {
  readonly url: string;
  readonly log: Logger;
  /** Called when the shared counters become available or unavailable. */
  readonly onShared: (shared: boolean) => void;
}

/** Timeout of a command, in milliseconds. Within a data centre, a command takes less than 1 ms. */
const COMMAND_TIMEOUT_MS = 250;
/** Delay between attempts to connect, in milliseconds. */
const RETRY_MS = 500;
const PREFIX = 'imagemill:requests:';

/**
 * Creates a store that connects to the server, and reconnects until it is closed. It never rejects:
 * without a connection, each instance counts on its own.
 */
export async function createSharedStore({ url, log, onShared }: SharedStoreOptions) {
  let client: RedisConnection | undefined;
  let shared: boolean | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  let closed = false;
  const store = new RedisStore({
    prefix: PREFIX,
    sendCommand: (...args) =>
      withTimeout(
        client?.sendCommand(args) ?? Promise.reject(new Error('not connected')),
        COMMAND_TIMEOUT_MS,
      ),
  });

  const setShared = (now: boolean, cause?: unknown): void => {
    if (shared === now || closed) return;
    shared = now;
    onShared(now);
    if (now) log.info('rate limit is shared with the other instances');
    else log.warn({ err: cause }, 'Redis does not respond: this instance counts requests on its own');
  };
  const destroyClient = (): void => {
    if (client?.isOpen) client.destroy();
    client = undefined;
  };
  const disconnect = (cause: unknown): void => {
    setShared(false, cause);
    destroyClient();
    clearTimeout(retryTimer);
    if (!closed) retryTimer = setTimeout(connect, RETRY_MS).unref();
  };
  /** Connects with a new client, since an unresponsive server may never answer sent commands. */
  async function connect(): Promise<void> {
    const fresh = createRedisClient(url, (error) => fresh === client && disconnect(error));
    client = fresh;
    try {
      await withTimeout(fresh.connect(), CONNECT_TIMEOUT_MS);
      await store.init({ windowMs: WINDOW_MS } as Options); // init() uses no other option
      setShared(true);
    } catch (error) {
      if (fresh === client) disconnect(error);
    }
  }

  await connect();
  return {
    /** Returns a store of the shared counters, and the local one when they are unavailable. */
    withFallback: (local: Store): Store => ({
      localKeys: false,
      async increment(key) {
        // Always count locally too, so that counts survive the loss of the connection.
        const localCount = await local.increment(key);
        if (!shared) return localCount;
        const current = client;
        try {
          return await store.increment(key);
        } catch (error) {
          if (current === client) disconnect(error);
          return localCount;
        }
      },
      decrement: (key) => local.decrement(key),
      resetKey: (key) => local.resetKey(key),
    }),
    /** Disconnects, and stops reconnecting. */
    close(): void {
      closed = true;
      clearTimeout(retryTimer);
      destroyClient();
    },
  };
}
