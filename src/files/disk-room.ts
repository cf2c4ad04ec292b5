import { serviceError } from '../errors.ts';

/**
 * Shares the room on a disk between the clients of all requests under way. What a request is going to store counts
 * before it is there, so that requests which begin at the same time do not all count on the same free bytes.
 */
export interface DiskRoom {
  /**
   * Begins to count a request.
   *
   * @param client the key of its client; a request without one has no share to keep to
   * @param bytes what the request is going to store as it is received
   * @throws ServiceError DISK_FULL as {@link RequestRoom.reserve} does
   */
  open(client: string | undefined, bytes: number): Promise<RequestRoom>;
  /** What all requests have stored and may still store, in bytes. */
  held(): number;
  /** What all requests have stored, in bytes. */
  stored(): number;
}

/** The room of one request. */
export interface RequestRoom {
  /**
   * Counts bytes that are about to be written: first of what the request announced, then beyond that.
   *
   * @throws ServiceError DISK_FULL as {@link RequestRoom.reserve} does
   */
  store(bytes: number): Promise<void>;
  /** Gives back what the request announced and did not send. */
  received(): void;
  /**
   * Takes room for a file of at most `bytes`. Where there is none, it waits for the files to settle that room was
   * reserved for before, since most turn out to be much smaller.
   *
   * @returns the function to call when the file is there, with its real size, or with 0 when there is none
   * @throws ServiceError DISK_FULL when the client is over its share, or when there is no room and no answer to cut off
   */
  reserve(bytes: number): Promise<(stored: number) => void>;
  /** Gives back the room of a file that was removed. */
  release(bytes: number): void;
  /** The request has nothing left to do but to send its answer, which may be cut off when another client needs room. */
  sending(answer: Answer): void;
  /** Ends the count: all of it is gone from the disk. */
  close(): void;
}

/** An answer that is being sent. */
export interface Answer {
  bytesPerSecond(): number;
  /** Ends it. Its request then closes its room. */
  cutOff(): void;
}

/** What stays free for the shells' pipes, the workers' folders and for what the counts miss. */
export const RESERVE_BYTES = 8 * 1024 ** 2;

interface Account {
  readonly client: string | undefined;
  /** On the disk. */
  stored: number;
  /** Announced or reserved, and not on the disk yet. */
  expected: number;
  answer?: Answer;
  readonly closed: PromiseWithResolvers<void>;
}

/** @param free tells the bytes that the disk has left, or nothing when it cannot be asked */
export function createDiskRoom(free: () => Promise<number | undefined>): DiskRoom {
  const accounts = new Set<Account>();
  /** Resolved when their file is there. */
  const reservations = new Set<Promise<void>>();
  /** The last reservation of each client, while one is asked for. */
  const lastAsked = new Map<string | undefined, Promise<unknown>>();
  const sum = (bytesOf: (account: Account) => number, some: Iterable<Account> = accounts): number =>
    [...some].reduce((total, account) => total + bytesOf(account), 0);
  const held = ({ stored, expected }: Account): number => stored + expected;
  const heldBy = (client: string | undefined): number =>
    sum(
      held,
      [...accounts].filter((account) => account.client === client),
    );

  /** Room as it is now, and what each client may have of it: one part each, and one for the next that comes. */
  function measure(left: number): { room: number; share: number; total: number } {
    const total = left + sum(({ stored }) => stored);
    const clients = new Set([...accounts].flatMap(({ client }) => client ?? [])).size;
    return {
      room: left - sum(({ expected }) => expected) - RESERVE_BYTES,
      share: total / (clients + 1),
      total,
    };
  }

  /** The slowest answer of a client that holds more than its share. */
  function slowestAnswer(share: number): Account | undefined {
    const candidates = [...accounts].filter(({ client, answer }) => answer && heldBy(client) > share);
    const speed = ({ answer }: Account): number => answer?.bytesPerSecond() ?? 0;
    return candidates.sort((one, other) => speed(one) - speed(other))[0];
  }

  /**
   * Adds `bytes` to what is expected for the account. A client may go beyond its share as long as the share of one more
   * client stays free.
   *
   * @param awaited reservations to wait for when there is no room
   */
  async function expect(
    account: Account,
    bytes: number,
    awaited: readonly Promise<void>[] = [],
  ): Promise<void> {
    const { client } = account;
    for (;;) {
      const left = await free();
      if (left === undefined) break;
      const { room, share } = measure(left);
      const inShare = client === undefined || heldBy(client) + bytes <= share;
      if (bytes <= (inShare ? room : room - share)) break;
      const slowest = inShare ? slowestAnswer(share) : undefined;
      const unsettled = awaited.filter((reservation) => reservations.has(reservation));
      if (!slowest && unsettled.length === 0) throw serviceError('DISK_FULL');
      slowest?.answer?.cutOff();
      await Promise.race(slowest ? [slowest.closed.promise] : unsettled);
    }
    account.expected += bytes;
  }

  /**
   * Cuts an estimate to what the request may still have of half of the disk, the share of a client that is alone: on a
   * small disk the largest possible result may never fit, and the real one nearly always does.
   */
  async function cutToShare(account: Account, bytes: number): Promise<number> {
    const left = await free();
    if (left === undefined) return bytes;
    const most = measure(left).total / 2 - held(account) - RESERVE_BYTES;
    return most > 0 ? Math.min(bytes, most) : bytes;
  }

  /** Runs the tasks of one client one after the other, so that each waits for the reservations of those before it. */
  async function inTurn<T>(client: string | undefined, task: () => Promise<T>): Promise<T> {
    const turn = (lastAsked.get(client) ?? Promise.resolve()).then(task, task);
    lastAsked.set(client, turn);
    try {
      return await turn;
    } finally {
      if (lastAsked.get(client) === turn) lastAsked.delete(client);
    }
  }

  return {
    held: () => sum(held),
    stored: () => sum(({ stored }) => stored),
    async open(client, bytes) {
      const account: Account = { client, stored: 0, expected: 0, closed: Promise.withResolvers() };
      /** What is expected of the upload alone. */
      let announced = 0;
      const close = (): void => {
        accounts.delete(account);
        account.closed.resolve();
      };
      accounts.add(account);
      try {
        await expect(account, bytes);
      } catch (error) {
        close();
        throw error;
      }
      announced = bytes;
      return {
        async store(more) {
          if (more > announced) await expect(account, more - announced);
          announced = Math.max(0, announced - more);
          account.expected -= more;
          account.stored += more;
        },
        received() {
          account.expected -= announced;
          announced = 0;
        },
        reserve(most) {
          return inTurn(client, async () => {
            const reserved = await cutToShare(account, most);
            await expect(account, reserved, [...reservations]);
            const { promise, resolve } = Promise.withResolvers<void>();
            reservations.add(promise);
            return (stored) => {
              account.expected -= reserved;
              account.stored += stored;
              reservations.delete(promise);
              resolve();
            };
          });
        },
        release(gone) {
          account.stored = Math.max(0, account.stored - gone);
        },
        sending(answer) {
          account.answer = answer;
        },
        close,
      };
    },
  };
}
