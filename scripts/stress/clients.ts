/** @module Concurrent clients, some of them misbehaving, and a tally of the responses. */
import { setTimeout as pause } from 'node:timers/promises';
import { decode, difference } from '../../test/helpers/pixels.ts';
import type { Random } from './random.ts';
import { batch, mutant, type Request } from './requests.ts';

/** Counts of requests and responses. */
export interface Tally {
  requests: number;
  /**
   * Number of responses by status. `cut`: the client disconnected on purpose. `lost`: no response.
   */
  readonly answers: Record<string, number>;
  /** Valid images converted to the expected bytes. */
  right: number;
  /** Descriptions of unexpected responses. */
  readonly wrong: string[];
}

/** Creates a tally without requests. */
export const emptyTally = (): Tally => ({ requests: 0, answers: {}, right: 0, wrong: [] });

/** Counts an answer: a status, a signal or a word. */
export function count(tally: Tally, answer: string | number): void {
  tally.answers[answer] = (tally.answers[answer] ?? 0) + 1;
}

/** Options of a run. */
export interface ClientRun {
  readonly base: string;
  readonly random: Random;
  readonly clients: number;
  readonly good: readonly Request[];
  readonly others: readonly Request[];
  /** Statuses that are acceptable for every request during a fault. */
  readonly excused?: readonly number[];
  /** True if a connection may fail without a response. */
  readonly mayLose?: boolean;
  /** Fraction of clients that disconnect early, from 0 to 1. */
  readonly leaving?: number;
}

/** Runs the clients until `until` aborts and all pending responses have arrived. */
export async function runClients(run: ClientRun, until: AbortSignal): Promise<Tally> {
  const tally = emptyTally();
  await Promise.all(
    Array.from({ length: run.clients }, async () => {
      while (!until.aborted) {
        await once(run, choose(run), tally);
        if (run.mayLose) await pause(20); // avoids a busy loop when connections are refused
      }
    }),
  );
  return tally;
}

function choose({ random, good, others }: ClientRun): Request {
  const roll = random.next();
  if (roll < 0.55 || others.length === 0) return random.pick(good);
  if (roll < 0.8) return random.pick(others);
  return roll < 0.9 ? mutant(random) : batch(random);
}

/** Sends one request and records in `tally` whether the response is as expected. */
export async function once(run: ClientRun, request: Request, tally: Tally): Promise<void> {
  const { base, random, excused = [], mayLose = false, leaving = 0.05 } = run;
  const disconnect = random.next() < leaving ? AbortSignal.timeout(random.below(400)) : undefined;
  tally.requests += 1;
  let status: number;
  let body: Buffer;
  try {
    // Encode the form first: fetch of Node.js crashes if the server rejects a form that is still
    // being written.
    const form = new Response(request.form());
    const headers = { 'content-type': form.headers.get('content-type') ?? '' };
    const encoded = new Uint8Array(await form.arrayBuffer());
    const init = { method: 'POST', headers, body: encoded, signal: disconnect ?? null };
    const answer = await fetch(base + request.path, init);
    status = answer.status;
    body = Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    count(tally, disconnect?.aborted ? 'cut' : 'lost');
    if (!disconnect?.aborted && !mayLose)
      tally.wrong.push(`${request.what}: no response (${(error as Error).cause ?? error})`);
    return;
  }
  count(tally, status);
  const problem = await judge(request, status, body, excused);
  if (problem) tally.wrong.push(`${request.what}: ${problem}`);
  else if (request.result && status === 200) tally.right += 1;
}

async function judge(
  request: Request,
  status: number,
  body: Buffer,
  excused: readonly number[],
): Promise<string | undefined> {
  if (![...request.expected, ...excused].includes(status)) return `${status} ${body.subarray(0, 200)}`;
  if (status !== 200) {
    return isErrorShape(body, status)
      ? undefined
      : `${status} without an error object: ${body.subarray(0, 200)}`;
  }
  if (body.length === 0) return '200 with an empty body';
  return request.result && !(await isSame(body, request.result)) ? '200 with a different image' : undefined;
}

/** Compares bytes or, for PDFs, which contain their creation time, the rendered page. */
async function isSame(result: Buffer, expected: Buffer): Promise<boolean> {
  if (result.equals(expected)) return true;
  if (result.subarray(0, 5).toString() !== '%PDF-') return false;
  return difference(await decode(result, 'pdf'), await decode(expected, 'pdf')).max === 0;
}

function isErrorShape(body: Buffer, status: number): boolean {
  try {
    const { error } = JSON.parse(body.toString()) as { error: { code: number; message: string } };
    return error.code === status && error.message.length > 0;
  } catch {
    return false;
  }
}

/** Adds the counts of `more` to `sum`. */
export function add(sum: Tally, more: Tally): void {
  sum.requests += more.requests;
  sum.right += more.right;
  sum.wrong.push(...more.wrong);
  for (const [answer, count] of Object.entries(more.answers))
    sum.answers[answer] = (sum.answers[answer] ?? 0) + count;
}
