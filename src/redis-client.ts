import { createClient } from '@redis/client';

/** A connection to Redis or Valkey that is made once: who has lost it makes a new one. */

/** How long a connection may take to be made, and so how long it can hold up a start, in milliseconds. */
export const CONNECT_TIMEOUT_MS = 1_000;

export type RedisConnection = ReturnType<typeof createRedisClient>;

/** @param onError is told of everything that goes wrong with it */
export function createRedisClient(url: string, onError: (error: Error) => void) {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: false },
  });
  client.on('error', onError);
  return client;
}
