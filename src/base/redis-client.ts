/** @module Creates clients for Redis or Valkey. */
import { createClient } from '@redis/client';

/** Timeout for connecting, in milliseconds. A start of the service can be delayed by this time. */
export const CONNECT_TIMEOUT_MS = 1_000;

/** A Redis or Valkey client that does not reconnect. */
export type RedisConnection = ReturnType<typeof createRedisClient>;

/**
 * Creates a client for Redis or Valkey, which is not connected yet. It connects only once: after a
 * lost connection, create another client. `onError` is called with each error of the client.
 */
export function createRedisClient(url: string, onError: (error: Error) => void) {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: false },
  });
  client.on('error', onError);
  return client;
}

/**
 * Rejects if the promise does not settle within `ms` milliseconds. After a delay of the event loop,
 * responses that have arrived are read first: a busy instance does not take Redis for unavailable.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const expire = () => reject(new Error(`timeout of ${ms} ms`));
  const timer = setTimeout(() => setImmediate(expire), ms);
  promise.catch(() => {}); // may reject after the timeout
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
