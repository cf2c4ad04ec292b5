/** @module Accounting of disk space, shared fairly between clients. */
import { serviceError } from '../tables/errors.ts';

/** A response that is being sent. */
export interface PendingResponse {
  bytesPerSecond(): number;
  /** Aborts the response. Its request then closes its account. */
  cutOff(): void;
}

/** Bytes that stay free for folders and uncounted files. */
export const MIN_FREE_BYTES = 8 * 1024 ** 2;

interface Account {
  readonly client: string | undefined;
  /** Bytes on the disk. */
  stored: number;
  /** Bytes that are announced or reserved, and not on the disk yet. */
  expected: number;
  /** The part of `expected` that belongs to the upload. */
  announced: number;
  response?: PendingResponse;
  readonly closed: PromiseWithResolvers<void>;
}

/** Disk space of one request. */
export type DiskAccount = Awaited<ReturnType<DiskSpace['open']>>;

const held = ({ stored, expected }: Account): number => stored + expected;

/**
 * Shares the disk space between the clients of all running requests. Bytes that a request is going
 * to store count before they are written, so that concurrent requests do not rely on the same free
 * bytes.
 */
export class DiskSpace {
  readonly #free: () => Promise<number | undefined>;
  readonly #accounts = new Set<Account>();
  /** Pending reservations. Each resolves when it settles. */
  readonly #reservations = new Set<Promise<void>>();
  /** Last task of each client that {@link #inTurn} runs. */
  readonly #lastTasks = new Map<string | undefined, Promise<unknown>>();

  /** @param free returns the free bytes of the disk, or `undefined` if they are unknown */
  constructor(free: () => Promise<number | undefined>) {
    this.#free = free;
  }

  /** Returns the bytes that all requests have stored or can still store. */
  held(): number {
    return this.#sum(held);
  }

  /** Returns the bytes that all requests have stored. */
  stored(): number {
    return this.#sum(({ stored }) => stored);
  }

  /**
   * Opens the account of an upload. Without a client, the request is not limited to a share.
   *
   * @throws {ServiceError} DISK_FULL
   */
  async open(client: string | undefined, bytes: number) {
    const account: Account = {
      client,
      stored: 0,
      expected: 0,
      announced: 0,
      closed: Promise.withResolvers(),
    };
    const close = (): void => {
      this.#accounts.delete(account);
      account.closed.resolve();
    };
    this.#accounts.add(account);
    try {
      await this.#addExpected(account, bytes);
    } catch (error) {
      close();
      throw error;
    }
    account.announced = bytes;
    return {
      /** Counts bytes about to be written, first from the announced ones. May throw DISK_FULL. */
      store: (more: number): Promise<void> => this.#store(account, more),
      /** Releases the bytes that the request announced and did not send. */
      releaseUnsent(): void {
        account.expected -= account.announced;
        account.announced = 0;
      },
      /**
       * Reserves space for a file. If there is not enough, waits until earlier reservations have
       * settled, since most files turn out to be much smaller. May throw DISK_FULL. The returned
       * function takes the real size when the file is written, or 0 when there is none.
       */
      reserve: (maxBytes: number): Promise<(stored: number) => void> =>
        this.#inTurn(client, () => this.#reserve(account, maxBytes)),
      /** Releases the space of a file that was removed. */
      release(removed: number): void {
        account.stored = Math.max(0, account.stored - removed);
      },
      /** Registers the response, which can be cut off when another client needs space. */
      registerResponse(response: PendingResponse): void {
        account.response = response;
      },
      /** Closes the account. All files of the request must have been removed. */
      close,
    };
  }

  async #store(account: Account, more: number): Promise<void> {
    if (more > account.announced) await this.#addExpected(account, more - account.announced);
    account.announced = Math.max(0, account.announced - more);
    account.expected -= more;
    account.stored += more;
  }

  async #reserve(account: Account, maxBytes: number): Promise<(stored: number) => void> {
    const left = await this.#free();
    const reserved = this.#limitToShare(account, maxBytes, left);
    await this.#addExpected(account, reserved, [...this.#reservations], left);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reservations.add(promise);
    return (stored) => {
      account.expected -= reserved;
      account.stored += stored;
      this.#reservations.delete(promise);
      resolve();
    };
  }

  #sum(bytesOf: (account: Account) => number): number {
    return [...this.#accounts].reduce((total, account) => total + bytesOf(account), 0);
  }

  #heldBy(client: string | undefined): number {
    return this.#sum((account) => (account.client === client ? held(account) : 0));
  }

  /** Returns the available space, and each client's share: equal, with one for the next client. */
  #measure(left: number): { space: number; share: number; total: number } {
    const total = left + this.stored();
    const clients = new Set([...this.#accounts].flatMap(({ client }) => client ?? [])).size;
    return {
      space: left - this.#sum(({ expected }) => expected) - MIN_FREE_BYTES,
      share: total / (clients + 1),
      total,
    };
  }

  /** Returns the slowest response among the clients that hold more than their share. */
  #slowestResponse(share: number): Account | undefined {
    const candidates = [...this.#accounts].filter(
      ({ client, response }) => response && this.#heldBy(client) > share,
    );
    const speed = ({ response }: Account): number => response?.bytesPerSecond() ?? 0;
    return candidates.sort((one, other) => speed(one) - speed(other))[0];
  }

  /**
   * Adds expected bytes, or waits for `awaited` reservations. A client can exceed its share as long
   * as the share of one more client stays free. `known`: the free bytes, if they were just read.
   *
   * @throws {ServiceError} DISK_FULL if the client exceeds its share, or if there is neither space
   *   nor a response to cut off
   */
  async #addExpected(
    account: Account,
    bytes: number,
    awaited: readonly Promise<void>[] = [],
    known?: number,
  ): Promise<void> {
    const { client } = account;
    for (let left = known ?? (await this.#free()); left !== undefined; left = await this.#free()) {
      const { space, share } = this.#measure(left);
      const inShare = client === undefined || this.#heldBy(client) + bytes <= share;
      if (bytes <= (inShare ? space : space - share)) break;
      const slowest = inShare ? this.#slowestResponse(share) : undefined;
      const unsettled = awaited.filter((reservation) => this.#reservations.has(reservation));
      if (!slowest && unsettled.length === 0) throw serviceError('DISK_FULL');
      slowest?.response?.cutOff();
      await Promise.race(slowest ? [slowest.closed.promise] : unsettled);
    }
    account.expected += bytes;
  }

  /**
   * Limits an estimate to what the request has left of half of the disk, the share of a single
   * client. On a small disk, the largest possible result may never fit, but the real one nearly
   * always does.
   */
  #limitToShare(account: Account, bytes: number, left: number | undefined): number {
    if (left === undefined) return bytes;
    const rest = this.#measure(left).total / 2 - held(account) - MIN_FREE_BYTES;
    return rest > 0 ? Math.min(bytes, rest) : bytes;
  }

  /** Runs the tasks of a client in turn, so that each waits for earlier reservations. */
  async #inTurn<T>(client: string | undefined, task: () => Promise<T>): Promise<T> {
    const turn = (this.#lastTasks.get(client) ?? Promise.resolve()).then(task, task);
    this.#lastTasks.set(client, turn);
    try {
      return await turn;
    } finally {
      if (this.#lastTasks.get(client) === turn) this.#lastTasks.delete(client);
    }
  }
}
