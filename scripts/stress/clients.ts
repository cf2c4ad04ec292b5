import { setTimeout as pause } from 'node:timers/promises';
import { decode, difference } from '../../test/helpers/pixels.ts';
import type { Random } from './random.ts';
import { batch, mutant, type Request } from './requests.ts';

/** Many clients at once, some of them no good, and a tally of what they were answered. */

export interface Tally {
  requests: number;
  /** By status; `cut` are those whose client left on purpose, `lost` those that got no answer. */
  readonly answers: Record<string, number>;
  /** Good images that came back as they should, byte for byte. */
  right: number;
  /** Answers that should not have been, in words. */
  readonly wrong: string[];
}

export const emptyTally = (): Tally => ({ requests: 0, answers: {}, right: 0, wrong: [] });

export interface ClientRun {
  readonly base: string;
  readonly random: Random;
  readonly clients: number;
  readonly good: readonly Request[];
  readonly others: readonly Request[];
  /** Statuses that are right for anybody while a fault is about. */
  readonly excused?: readonly number[];
  /** Whether a connection may fail without an answer. */
  readonly mayLose?: boolean;
  /** The share of clients that leave in the middle, of 1. */
  readonly leaving?: number;
}

/** Lets the crowd in until `until` fires, and waits until the last of them has been served. */
export async function runClients(crowd: ClientRun, until: AbortSignal): Promise<Tally> {
  const tally = emptyTally();
  await Promise.all(
    Array.from({ length: crowd.clients }, async () => {
      while (!until.aborted) {
        await once(crowd, choose(crowd), tally);
        if (crowd.mayLose) await pause(20); // or refused connections would make it a busy loop
      }
    }),
  );
  return tally;
}

function choose({ random, good, others }: ClientRun): Request {
  const dice = random.next();
  if (dice < 0.55 || others.length === 0) return random.pick(good);
  if (dice < 0.8) return random.pick(others);
  return dice < 0.9 ? mutant(random) : batch(random);
}

/** Sends one request and judges its answer. */
export async function once(crowd: ClientRun, request: Request, tally: Tally): Promise<void> {
  const { base, random, excused = [], mayLose = false, leaving = 0.05 } = crowd;
  const leave = random.next() < leaving ? AbortSignal.timeout(random.below(400)) : undefined;
  tally.requests += 1;
  const count = (answer: string): void => {
    tally.answers[answer] = (tally.answers[answer] ?? 0) + 1;
  };
  let status: number;
  let body: Buffer;
  try {
    // Encoded beforehand: a form that is still being written when its client is refused takes Node's fetch down.
    const form = new Response(request.form());
    const headers = { 'content-type': form.headers.get('content-type') ?? '' };
    const encoded = new Uint8Array(await form.arrayBuffer());
    const init = { method: 'POST', headers, body: encoded, ...(leave && { signal: leave }) };
    const answer = await fetch(base + request.path, init);
    status = answer.status;
    body = Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    count(leave?.aborted ? 'cut' : 'lost');
    if (!leave?.aborted && !mayLose)
      tally.wrong.push(`${request.what}: no answer (${(error as Error).cause ?? error})`);
    return;
  }
  count(String(status));
  const trouble = await judge(request, status, body, excused);
  if (trouble) tally.wrong.push(`${request.what}: ${trouble}`);
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
    return isErrorShape(body, status) ? undefined : `${status} in no error shape: ${body.subarray(0, 200)}`;
  }
  if (body.length === 0) return '200 with nothing';
  return request.result && !(await isSame(body, request.result)) ? '200 with another picture' : undefined;
}

/** The same bytes; or of a PDF, in which the time of its making stands, the same page. */
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

export function add(sum: Tally, more: Tally): void {
  sum.requests += more.requests;
  sum.right += more.right;
  sum.wrong.push(...more.wrong);
  for (const [answer, count] of Object.entries(more.answers))
    sum.answers[answer] = (sum.answers[answer] ?? 0) + count;
}
