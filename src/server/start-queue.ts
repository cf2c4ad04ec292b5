/**
 * @module Starts the requests of all connections in one queue that is fair between clients, so that a client with many connections does
 * not delay others.
 */

/** Time of a turn of the event loop after which no other request starts in it, in milliseconds. Results of tools and other events follow. */
const TURN_MS = 5;

/** Queue of requests that wait for their start. */
export class StartQueue {
  /** The starts that wait, by client. The client whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #now: () => number;
  /** Time of the first start in this turn of the event loop; undefined if there was none. */
  #turnBegan: number | undefined;
  #isRunning = false;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Calls `start`: at once if no request waits and the turn is not over, or after those of other clients. */
  add(client: string, start: () => void): void {
    const own = this.#waiting.get(client);
    if (own) own.push(start);
    else this.#waiting.set(client, [start]);
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.size > 0) {
      while (this.#isOver()) await new Promise(setImmediate);
      this.#startNext();
      await undefined; // handlers of started requests continue, so that their time counts
    }
    this.#isRunning = false;
  }

  /** Returns whether the turn of the event loop is over for starts. */
  #isOver(): boolean {
    if (this.#turnBegan === undefined) {
      this.#turnBegan = this.#now();
      setImmediate(() => {
        this.#turnBegan = undefined;
      });
    }
    return this.#now() - this.#turnBegan >= TURN_MS;
  }

  #startNext(): void {
    const [client, starts] = this.#waiting.entries().next().value as [string, (() => void)[]];
    const start = starts.shift() as () => void;
    this.#waiting.delete(client);
    if (starts.length > 0) this.#waiting.set(client, starts);
    start();
  }
}
