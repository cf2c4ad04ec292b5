/**
 * @module Starts the requests of all connections in one queue that is fair between clients, so that
 * a client with many connections does not delay others. A client whose requests are refused is
 * slowed down.
 */

/** Time in ms after which no request starts in a turn of the event loop. Other events follow. */
const TURN_MS = 5;

/** Time between two starts of a client whose requests are refused, in milliseconds. */
const PACE_MS = 20;
/** Time after the last refusal for which a client is slowed down, in milliseconds. */
const PACED_MS = 1000;

type Start = () => void;

/** Queue of requests that wait for their start. */
export class StartQueue {
  /** The starts that wait, by client. The client whose turn is next comes first. */
  readonly #waiting = new Map<string, Start[]>();
  /** The clients that are slowed down: their starts, and the time until which. */
  readonly #paced = new Map<string, { readonly starts: Set<Start>; until: number }>();
  readonly #now: () => number;
  /** Time of the first start in this turn of the event loop; undefined if there was none. */
  #turnBegan: number | undefined;
  #isRunning = false;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Calls `start`: at once if none waits and the turn is not over, or after other clients'. */
  add(client: string, start: Start): void {
    const paced = this.#paced.get(client);
    if (paced) paced.starts.add(start);
    else this.#enqueue(client, start);
  }

  /** Forgets a start of a paced client: connections may open and close faster than they start. */
  forget(client: string, start: Start): void {
    this.#paced.get(client)?.starts.delete(start);
  }

  /** Slows a client down, because a request of it was refused before anything was done for it. */
  slowDown(client: string): void {
    const until = this.#now() + PACED_MS;
    const paced = this.#paced.get(client);
    if (paced) {
      paced.until = until;
      return;
    }
    this.#paced.set(client, { starts: new Set(this.#waiting.get(client)), until });
    this.#waiting.delete(client);
    if (this.#paced.size > 1) return;
    const timer = setInterval(() => {
      for (const [client, { starts, until }] of this.#paced) {
        const [start] = starts;
        if (start) {
          starts.delete(start);
          this.#enqueue(client, start);
        } else if (until <= this.#now()) this.#paced.delete(client);
      }
      if (this.#paced.size === 0) clearInterval(timer);
    }, PACE_MS).unref();
  }

  #enqueue(client: string, start: Start): void {
    const own = this.#waiting.get(client);
    if (own) own.push(start);
    else this.#waiting.set(client, [start]);
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.size > 0) {
      if (this.#isOver()) {
        await new Promise(setImmediate);
        continue;
      }
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
    const [client, starts] = this.#waiting.entries().next().value as [string, Start[]];
    const start = starts.shift() as Start;
    this.#waiting.delete(client);
    if (starts.length > 0) this.#waiting.set(client, starts);
    start();
  }
}
