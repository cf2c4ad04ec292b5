/** @module Aborts responses that are read too slowly. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { PendingResponse } from '../files/disk-space.ts';

/**
 * Minimum rate of a response in bytes per second, averaged over one window. Slower responses occupy disk space for too
 * long. The kernel forwards the data of a slow reader in pieces of up to 2 MiB, so shorter windows are not meaningful.
 */
export const MIN_RESPONSE_BYTES_PER_SECOND = 4096;

/** A response whose rate is monitored. */
export interface MonitoredResponse extends PendingResponse {
  /** Stops monitoring, when the response has been sent or cannot be sent. */
  end(): void;
}

/**
 * Monitors the rate of a response, and destroys the response if it stalls or is read too slowly. Its files occupy disk
 * space until it has been sent.
 *
 * @param windowMs stall timeout, and time over which the rate is averaged, in milliseconds
 */
export function monitorResponse(res: ServerResponse, windowMs: number): MonitoredResponse {
  const started = performance.now();
  const sentBefore = sentBytes(res.socket);
  const cutOff = (): void => void res.destroy();
  let sent = sentBefore;
  const timer = setInterval(() => {
    const before = sent;
    sent = sentBytes(res.socket);
    if (isTooSlow(sent - before, windowMs)) cutOff();
  }, windowMs);
  res.setTimeout(windowMs, cutOff);
  return {
    cutOff,
    end: () => clearInterval(timer),
    bytesPerSecond: () =>
      (sentBytes(res.socket) - sentBefore) / Math.max(1, (performance.now() - started) / 1000),
  };
}

/** Returns whether a client that read this many bytes in `windowMs` milliseconds is slower than the minimum rate. */
export function isTooSlow(bytes: number, windowMs: number): boolean {
  return bytes < (MIN_RESPONSE_BYTES_PER_SECOND * windowMs) / 1000;
}

/** Returns the number of bytes that the kernel has accepted. */
export function sentBytes(socket: Socket | null): number {
  return socket ? socket.bytesWritten - socket.writableLength : 0;
}
