/** @module What the faults of the stress test have in common. */
import { slowness } from '../processes/usage.ts';
import { add, type ClientRun, emptyTally, once, runClients, type Tally } from './clients.ts';
import type { Random } from './random.ts';
import type { Request } from './requests.ts';
import { filesLeft, listLeftovers, type Server, waitUntil } from './server.ts';

/** Options of a fault. */
export interface FaultParts {
  /** Duration of each fault. */
  readonly seconds: number;
  readonly random: Random;
  readonly good: readonly Request[];
  readonly others: readonly Request[];
  /** Path of the real ImageMagick. */
  readonly magick: string;
}

/** Outcome of a fault. */
export interface Outcome {
  /** Why the fault could not run on this machine. */
  readonly notRun?: string;
  readonly tally: Tally;
  /** Measurements to print. */
  readonly figures?: string;
  /** Files and processes left after the server exited. */
  readonly left: readonly string[];
}

/** A fault: runs for its time, and reports. */
export type Fault = (parts: FaultParts) => Promise<Outcome>;

/** Returns the options of clients that send requests to the server of a fault. */
export const clientRun = (
  { random, good, others }: FaultParts,
  { base }: Server,
  more: Partial<ClientRun> = {},
): ClientRun => ({
  base,
  random,
  good,
  others,
  clients: 6,
  ...more,
});

/** Runs clients for the time of a fault, or for a share of it. */
export const runLoad = (
  parts: FaultParts,
  server: Server,
  more: Partial<ClientRun> = {},
  share = 1,
): Promise<Tally> =>
  runClients(clientRun(parts, server, more), AbortSignal.timeout(parts.seconds * 1000 * share));

/**
 * Ends a fault: valid requests must succeed again, and the server must exit with 0 and leave
 * nothing behind.
 */
export async function finish(
  parts: FaultParts,
  server: Server,
  tally: Tally,
  more: Partial<ClientRun> = {},
): Promise<Outcome> {
  const after = emptyTally();
  // The server removes the files of a request after its response.
  await waitUntil(() => !filesLeft(server).some((path) => path.includes('request-')));
  const withoutFault = clientRun(parts, server, { leaving: 0, ...more });
  for (const request of parts.good.slice(0, 12)) await once(withoutFault, request, after);
  if (after.right === 0) after.wrong.push('no request succeeds after the fault');
  const left = await endServer(server, after.wrong);
  add(tally, after);
  return { tally, left };
}

/** Ends a server, which must exit with 0. Returns what it left behind. */
export async function endServer(server: Server, wrong: string[]): Promise<string[]> {
  const status = await server.end();
  if (status !== 0) wrong.push(`ended with ${status}`);
  return listLeftovers(server);
}

/**
 * Maximum CPU time of a turn of the event loop, in ms, on a machine without {@link slowness}.
 * Unlike the time of a response, that does not depend on other processes.
 */
const MAX_TURN_MS = 100;

/** Returns whether a turn of the event loop took too long, as a list of problems. */
export const turnProblems = (longestTurnMs: number): string[] =>
  longestTurnMs > MAX_TURN_MS * slowness()
    ? [`the event loop was blocked for ${longestTurnMs.toFixed(0)} ms`]
    : [];
