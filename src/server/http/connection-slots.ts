/** @module Slots for open connections: of all clients, and of each. */
import type { Socket } from 'node:net';
import { maxOpenFiles } from '../../files/system.ts';

/** Maximum numbers of open connections: of all, and of those with the same client key. */
interface ConnectionLimits {
  readonly max: number;
  readonly maxPerClient: number;
}

/**
 * Derives the connection limits from the maximum number of open files. A third is reserved for
 * connections, the rest for images and for the pipes of tools. One client may use a quarter of the
 * connections and at most 1000, since an idle connection takes about 19 kB of memory.
 */
export function connectionLimits(): ConnectionLimits {
  const max = Math.floor(maxOpenFiles() / 3);
  return { max, maxPerClient: Math.min(Math.ceil(max / 4), 1000) };
}

/** Slots for probes, in addition to the regular limits. A probe needs its slot for milliseconds. */
export const PROBE_RESERVE: ConnectionLimits = { max: 64, maxPerClient: 4 };

/** A set of connection slots. When all are taken, an idle connection is closed to free a slot. */
export class ConnectionSlots {
  readonly #limits: ConnectionLimits;
  readonly #clients = new Map<Socket, string | undefined>();
  readonly #ofClient = new Map<string, Set<Socket>>();
  /** Idle connections, the longest idle first. */
  readonly #idle = new Set<Socket>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Assigns a slot to a connection; false if none is free and none can be freed. */
  take(socket: Socket, client: string | undefined): boolean {
    const { max, maxPerClient } = this.#limits;
    const own = client === undefined ? undefined : (this.#ofClient.get(client) ?? new Set());
    if (own && own.size >= maxPerClient && !this.#closeIdleOf(own)) return false;
    if (this.#clients.size >= max && !this.#closeIdleOf(this.#idle)) return false;
    this.#clients.set(socket, client);
    if (client !== undefined && own) this.#ofClient.set(client, own.add(socket));
    this.#idle.add(socket);
    socket.once('close', () => this.#leave(socket));
    return true;
  }

  /** Marks a connection as idle or busy. Only idle connections are closed to free a slot. */
  setIdle(socket: Socket, idle: boolean): void {
    this.#idle.delete(socket);
    if (idle && this.#clients.has(socket)) this.#idle.add(socket);
  }

  #closeIdleOf(sockets: ReadonlySet<Socket>): boolean {
    for (const socket of sockets) {
      if (!this.#idle.has(socket)) continue;
      socket.destroy();
      this.#leave(socket);
      return true;
    }
    return false;
  }

  #leave(socket: Socket): void {
    const client = this.#clients.get(socket);
    this.#clients.delete(socket);
    this.#idle.delete(socket);
    if (client === undefined) return;
    const own = this.#ofClient.get(client);
    own?.delete(socket);
    if (own?.size === 0) this.#ofClient.delete(client);
  }
}
