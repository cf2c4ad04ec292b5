import type { Options, Store } from 'express-rate-limit';
import type { Logger } from 'pino';
import { RedisStore } from 'rate-limit-redis';
import { CONNECT_TIMEOUT_MS, createRedisClient, type RedisConnection } from '../redis-client.ts';
import { WINDOW_MS } from './rate-limit.ts';

/**
 * Counters that several instances share, in Redis or Valkey. While it is not there, each instance goes on with
 * what it has counted itself, and no request waits to find that out more than once.
 */

export interface SharedStore {
  /** The store of the rate limit, in front of one that counts here. */
  withFallback(own: Store): Store;
  /** Hangs up. */
  close(): void;
}

export interface SharedStoreOptions {
  readonly url: string;
  readonly log: Logger;
  /** Is told whenever it changes whether all instances count together. */
  readonly onShared: (shared: boolean) => void;
}

/** How long a request waits for its count, in milliseconds. In one data centre it takes less than one. */
const COMMAND_TIMEOUT_MS = 250;
/** From one attempt to connect to the next, in milliseconds. */
const RETRY_MS = 500;
const PREFIX = 'imagemill:requests:';

/** Connects, and goes on trying for ever. It never fails: without a connection, everybody counts alone. */
export async function createSharedStore({ url, log, onShared }: SharedStoreOptions): Promise<SharedStore> {
  let client: RedisConnection | undefined;
  let shared: boolean | undefined;
  let again: NodeJS.Timeout | undefined;
  let closed = false;
  const store = new RedisStore({
    prefix: PREFIX,
    sendCommand: (...args) =>
      withTimeout(client?.sendCommand(args) ?? Promise.reject(new Error('no connection'))),
  });

  const setShared = (now: boolean, cause?: unknown): void => {
    if (shared === now || closed) return;
    shared = now;
    onShared(now);
    if (now) log.info('requests are counted together with the other instances');
    else log.warn({ err: cause }, 'the shared counters do not answer: requests are counted here alone');
  };
  const hangUp = (): void => {
    if (client?.isOpen) client.destroy();
    client = undefined;
  };
  const disconnect = (cause: unknown): void => {
    setShared(false, cause);
    hangUp();
    clearTimeout(again);
    if (!closed) again = setTimeout(connect, RETRY_MS).unref();
  };
  /** Anew from the ground, since a server that answers no more may hold what was sent to it for ever. */
  async function connect(): Promise<void> {
    const fresh = createRedisClient(url, (error) => fresh === client && disconnect(error));
    client = fresh;
    try {
      await withTimeout(fresh.connect(), CONNECT_TIMEOUT_MS);
      await store.init({ windowMs: WINDOW_MS } as Options); // the rest of the options is not its business
      setShared(true);
    } catch (error) {
      if (fresh === client) disconnect(error);
    }
  }

  await connect();
  return {
    withFallback: (own) => ({
      localKeys: false,
      async increment(key) {
        // Counted here in any case, so that nobody starts anew when the others are lost.
        const alone = await own.increment(key);
        if (!shared) return alone;
        const counting = client;
        try {
          return await store.increment(key);
        } catch (error) {
          if (counting === client) disconnect(error);
          return alone;
        }
      },
      decrement: (key) => own.decrement(key),
      resetKey: (key) => own.resetKey(key),
    }),
    close() {
      closed = true;
      clearTimeout(again);
      hangUp();
    },
  };
}

/** What is not there in time is not waited for. */
async function withTimeout<T>(promise: Promise<T>, ms: number = COMMAND_TIMEOUT_MS): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  promise.catch(() => {}); // it may fail when nobody looks any more
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
