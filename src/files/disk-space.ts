/** @module Accounting of disk space, shared fairly between clients. */
import { serviceError } from '../errors.ts';

/** A response that is being sent. */
export interface PendingResponse {
  /** Returns the current transfer rate. */
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
  response?: PendingResponse;
  readonly closed: PromiseWithResolvers<void>;
}

/** Disk space of one request. */
export type DiskAccount = Awaited<ReturnType<ReturnType<typeof createDiskSpace>['open']>>;

/**
 * Shares the disk space between the clients of all running requests. Bytes that a request is going to store count
 * before they are written, so that concurrent requests do not rely on the same free bytes.
 *
 * @param free returns the free bytes of the disk, or `undefined` if they are unknown
 */
export function createDiskSpace(free: () => Promise<number | undefined>) {
  const accounts = new Set<Account>();
  /** Pending reservations. Each resolves when it settles. */
  const reservations = new Set<Promise<void>>();
  /** Last task of each client that {@link inTurn} runs. */
  const lastTasks = new Map<string | undefined, Promise<unknown>>();
  const sum = (bytesOf: (account: Account) => number, some: Iterable<Account> = accounts): number =>
    [...some].reduce((total, account) => total + bytesOf(account), 0);
  const held = ({ stored, expected }: Account): number => stored + expected;
  const heldBy = (client: string | undefined): number =>
    sum(
      held,
      [...accounts].filter((account) => account.client === client),
    );

  /** Returns the available space, and the share of each client: an equal part for each, and one for the next client. */
  function measure(left: number): { space: number; share: number; total: number } {
    const total = left + sum(({ stored }) => stored);
    const clients = new Set([...accounts].flatMap(({ client }) => client ?? [])).size;
    return {
      space: left - sum(({ expected }) => expected) - MIN_FREE_BYTES,
      share: total / (clients + 1),
      total,
    };
  }

  /** Returns the slowest response among the clients that hold more than their share. */
  function slowestResponse(share: number): Account | undefined {
    const candidates = [...accounts].filter(({ client, response }) => response && heldBy(client) > share);
    const speed = ({ response }: Account): number => response?.bytesPerSecond() ?? 0;
    return candidates.sort((one, other) => speed(one) - speed(other))[0];
  }

  /**
   * Adds expected bytes to an account. A client can exceed its share as long as the share of one more client stays
   * free.
   *
   * @param awaited reservations to wait for when there is not enough space
   * @param known the free bytes of the disk, if they were just read
   * @throws {ServiceError} DISK_FULL if the client exceeds its share, or if there is neither space nor a response to cut off
   */
  async function addExpected(
    account: Account,
    bytes: number,
    awaited: readonly Promise<void>[] = [],
    known?: number,
  ): Promise<void> {
    const { client } = account;
    for (let left = known ?? (await free()); left !== undefined; left = await free()) {
      const { space, share } = measure(left);
      const inShare = client === undefined || heldBy(client) + bytes <= share;
      if (bytes <= (inShare ? space : space - share)) break;
      const slowest = inShare ? slowestResponse(share) : undefined;
      const unsettled = awaited.filter((reservation) => reservations.has(reservation));
      if (!slowest && unsettled.length === 0) throw serviceError('DISK_FULL');
      slowest?.response?.cutOff();
      await Promise.race(slowest ? [slowest.closed.promise] : unsettled);
    }
    account.expected += bytes;
  }

  /**
   * Limits an estimate to what the request has left of half of the disk, the share of a single client. On a small disk,
   * the largest possible result may never fit, but the real one nearly always does.
   */
  function limitToShare(account: Account, bytes: number, left: number | undefined): number {
    if (left === undefined) return bytes;
    const rest = measure(left).total / 2 - held(account) - MIN_FREE_BYTES;
    return rest > 0 ? Math.min(bytes, rest) : bytes;
  }

  /** Runs the tasks of one client sequentially, so that each waits for the reservations of earlier tasks. */
  async function inTurn<T>(client: string | undefined, task: () => Promise<T>): Promise<T> {
    const turn = (lastTasks.get(client) ?? Promise.resolve()).then(task, task);
    lastTasks.set(client, turn);
    try {
      return await turn;
    } finally {
      if (lastTasks.get(client) === turn) lastTasks.delete(client);
    }
  }

  return {
    /** Returns the bytes that all requests have stored or can still store. */
    held: () => sum(held),
    /** Returns the bytes that all requests have stored. */
    stored: () => sum(({ stored }) => stored),
    /**
     * Opens the account of a request.
     *
     * @param client the key of the client. A request without a key is not limited to a share.
     * @param bytes the announced size of the upload
     * @throws {ServiceError} DISK_FULL
     */
    async open(client: string | undefined, bytes: number) {
      const account: Account = { client, stored: 0, expected: 0, closed: Promise.withResolvers() };
      /** Expected bytes of the upload only. */
      let announced = 0;
      const close = (): void => {
        accounts.delete(account);
        account.closed.resolve();
      };
      accounts.add(account);
      try {
        await addExpected(account, bytes);
      } catch (error) {
        close();
        throw error;
      }
      announced = bytes;
      return {
        /** Counts bytes that are about to be written: first from the announced size, then in addition to it. May throw DISK_FULL. */
        async store(more: number): Promise<void> {
          if (more > announced) await addExpected(account, more - announced);
          announced = Math.max(0, announced - more);
          account.expected -= more;
          account.stored += more;
        },
        /** Releases the bytes that the request announced and did not send. */
        releaseUnsent(): void {
          account.expected -= announced;
          announced = 0;
        },
        /**
         * Reserves space for a file of at most `maxBytes`. If there is not enough, waits until earlier reservations have
         * settled, since most files turn out to be much smaller. May throw DISK_FULL.
         *
         * @returns a function to call with the real size when the file is written, or with 0 when there is none
         */
        reserve(maxBytes: number): Promise<(stored: number) => void> {
          return inTurn(client, async () => {
            const left = await free();
            const reserved = limitToShare(account, maxBytes, left);
            await addExpected(account, reserved, [...reservations], left);
            const { promise, resolve } = Promise.withResolvers<void>();
            reservations.add(promise);
            return (stored: number): void => {
              account.expected -= reserved;
              account.stored += stored;
              reservations.delete(promise);
              resolve();
            };
          });
        },
        /** Releases the space of a file that was removed. */
        release(removed: number): void {
          account.stored = Math.max(0, account.stored - removed);
        },
        /** Registers the response that the request is sending. It can be cut off when another client needs space. */
        registerResponse(response: PendingResponse): void {
          account.response = response;
        },
        /** Closes the account. All files of the request must have been removed. */
        close,
      };
    },
  };
}
