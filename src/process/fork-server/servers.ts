/**
 * @module The fork servers of all tools. A server is replaced after some jobs or time, because its
 *   children share one layout of memory, and because it does not see updates of the tool.
 */
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { JobEnd, RunningJob } from '../command.ts';
import type { Job } from './messages.ts';
import { ForkServer, NotStartedError, type ServerOptions, ServerRefusedError } from './server.ts';

/**
 * Backoff before replacing a server whose child crashed, in ms. There is none after the first
 * crash. Then it doubles from the first value to the second one, until a server has run for
 * `CALM_MS` without a crash.
 */
const [MIN_BACKOFF_MS, MAX_BACKOFF_MS, CALM_MS] = [10, 80, 60_000];
/** Minimum time between two checks for changed files, in ms. */
const CHECK_INTERVAL_MS = 5_000;

/** Reason of a server that could create its namespaces, but not use them. */
const NO_NAMESPACES = 'namespaces';

/** A tool that a server runs. */
export interface ServedTool extends Pick<ServerOptions, 'file' | 'prepare'> {
  /** Variables that only this tool needs, which its libraries read before there is a job. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Files and folders whose change makes a new server necessary. */
  readonly dependencies: readonly string[];
}

/** Reason why a server was replaced. */
export const RENEWAL_REASONS = ['jobs', 'age', 'changed', 'crash', 'ended'] as const;
export type RenewalReason = (typeof RENEWAL_REASONS)[number];

export interface ForkServersOptions
  extends Omit<ServerOptions, 'file' | 'prepare' | 'namespaces'>,
    Partial<typeof DEFAULTS> {
  readonly tools: readonly ServedTool[];
}

const DEFAULTS = {
  /** Number of jobs after which a server is replaced. */
  maxJobs: 1_000,
  /** Age at which a server is replaced, in ms. */
  maxAgeMs: 3_600_000,
  /** Waits for a backoff, in ms. */
  wait: delay as (ms: number) => Promise<unknown>,
  onRenewal: (_reason: RenewalReason): void => {},
  /** Called when a tool cannot be a server, and is started for each image instead. */
  onRefused: (_file: string, _error: Error): void => {},
};

/** Keeps one server of a tool, and replaces it when necessary. */
class ToolServer {
  readonly #tool: ServedTool;
  readonly #servers: ForkServers;
  #current: ForkServer | undefined;
  #starting: Promise<ForkServer> | undefined;
  /** State of the tool's files when the current server was started, see {@link signatureOf}. */
  #signature = '';
  #checkedAt = 0;
  #crashedAt = Number.NEGATIVE_INFINITY;
  #backoffMs = 0;

  constructor(tool: ServedTool, servers: ForkServers) {
    this.#tool = tool;
    this.#servers = servers;
  }

  /** Whether the server has namespaces of its own. */
  get isolated(): boolean {
    return this.#current?.isolated ?? true;
  }

  /** Starts a server, which replaces the current one. */
  replace(waitMs = 0): Promise<ForkServer> {
    this.#starting ??= this.#start(waitMs).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** Runs a job. If its server ends before it has started the job, another one runs it. */
  async run(job: Job): Promise<RunningJob> {
    let [server, running] = await this.#begin(job);
    let isKilled = false;
    const end = async (): Promise<JobEnd> => {
      const ended = await running.ended;
      if (!isKilled && hasCrashed(ended)) this.#discard(server);
      return ended;
    };
    const endOrRepeat = async (): Promise<JobEnd> => {
      const ended = await end();
      if (isKilled || !(ended.exit.error instanceof NotStartedError)) return ended;
      try {
        [server, running] = await this.#begin(job);
      } catch (error) {
        return { ...ended, exit: { error: error as Error } };
      }
      if (isKilled) running.kill();
      return end();
    };
    return {
      kill() {
        isKilled = true;
        running.kill();
      },
      ended: endOrRepeat(),
    };
  }

  /** Begins a job in the current server, or in the next one if that is closed before. */
  async #begin(job: Job): Promise<[ForkServer, RunningJob]> {
    for (;;) {
      const server = await this.#acquire();
      try {
        return [server, await server.run(job)];
      } catch (error) {
        if (!(error instanceof NotStartedError)) throw error;
      }
    }
  }

  /** Ends the current server after its jobs. Resolves when no further one is starting. */
  async close(): Promise<void> {
    if (this.#current) this.#servers.retire(this.#current);
    await this.#starting;
  }

  async #start(waitMs: number): Promise<ForkServer> {
    if (waitMs > 0) await this.#servers.options.wait(waitMs);
    this.#signature = await signatureOf(this.#tool.dependencies);
    const server = await this.#servers.open(this.#tool);
    if (this.#current) this.#servers.retire(this.#current);
    this.#current = server;
    if (this.#servers.closed) this.#servers.retire(server);
    return server;
  }

  async #acquire(): Promise<ForkServer> {
    const server = this.#current;
    const { maxJobs, maxAgeMs, onRenewal } = this.#servers.options;
    if (!server?.alive) {
      if (server) onRenewal('ended');
      this.#current = undefined;
      return this.replace();
    }
    if (server.started >= maxJobs) this.#renew('jobs');
    else if (performance.now() - server.startedAt >= maxAgeMs) this.#renew('age');
    else void this.#checkFiles();
    return server;
  }

  #renew(reason: RenewalReason): void {
    if (this.#servers.closed || this.#starting) return;
    this.#servers.options.onRenewal(reason);
    this.replace().catch(() => {}); // the old server continues, or the next job tries again
  }

  async #checkFiles(): Promise<void> {
    if (performance.now() - this.#checkedAt < CHECK_INTERVAL_MS) return;
    this.#checkedAt = performance.now();
    if ((await signatureOf(this.#tool.dependencies)) !== this.#signature) this.#renew('changed');
  }

  /** Replaces a server whose child crashed, before another job. Jobs wait for the new one. */
  #discard(server: ForkServer): void {
    if (this.#current !== server || this.#servers.closed) return;
    this.#current = undefined;
    this.#servers.retire(server);
    this.#servers.options.onRenewal('crash');
    const isCalm = performance.now() - this.#crashedAt > CALM_MS;
    this.#backoffMs = isCalm ? 0 : Math.min(Math.max(2 * this.#backoffMs, MIN_BACKOFF_MS), MAX_BACKOFF_MS);
    this.#crashedAt = performance.now();
    this.replace(this.#backoffMs).catch(() => {});
  }
}

/** The fork servers of all tools. None starts before {@link start} is called. */
export class ForkServers {
  readonly options: ForkServersOptions & typeof DEFAULTS;
  readonly #toolServers = new Map<string, ToolServer>();
  readonly #ending = new Set<Promise<void>>();
  #closed = false;
  /** Namespaces work for all servers or for none. */
  #namespaces = true;

  constructor(options: ForkServersOptions) {
    this.options = { ...DEFAULTS, ...options };
  }

  /** Starts the servers, or on demand with their first job. Reports those that refuse. */
  async start(onDemand: readonly string[] = []): Promise<void> {
    const begin = async (tool: ServedTool): Promise<void> => {
      const toolServer = new ToolServer(tool, this);
      if (onDemand.includes(tool.file)) return void this.#toolServers.set(tool.file, toolServer);
      try {
        await toolServer.replace();
        this.#toolServers.set(tool.file, toolServer);
      } catch (error) {
        if (!(error instanceof ServerRefusedError)) throw error;
        this.options.onRefused(tool.file, error);
      }
    };
    await Promise.all(this.options.tools.map(begin));
  }

  /** Returns whether a server runs this program. */
  serves(file: string): boolean {
    return this.#toolServers.has(file);
  }

  /**
   * Runs a job in a server of its program.
   *
   * @throws {Error} with the code of errno(3) if the server cannot be started
   */
  async run(job: Job, file: string): Promise<RunningJob> {
    const toolServer = this.#toolServers.get(file);
    if (!toolServer) throw new Error(`no fork server runs ${file}`);
    return toolServer.run(job);
  }

  /** Whether all servers have namespaces of their own. */
  get isolated(): boolean {
    return this.#toolServers.size > 0 && [...this.#toolServers.values()].every(({ isolated }) => isolated);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Ends all servers after their jobs. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled([...this.#toolServers.values()].map((toolServer) => toolServer.close()));
    await Promise.allSettled(this.#ending);
  }

  /** Starts a server of a tool: in namespaces, unless a server could not use them. */
  async open(tool: ServedTool): Promise<ForkServer> {
    if (this.#closed) throw new Error('the fork servers are closed');
    const { library, concurrency } = this.options;
    const { file, prepare } = tool;
    const env = { ...this.options.env, ...tool.env };
    const namespaces = this.#namespaces;
    return ForkServer.start({ library, env, file, prepare, namespaces, concurrency }).catch((error) => {
      if (!this.#namespaces || error.message !== NO_NAMESPACES) throw error;
      this.#namespaces = false;
      return this.open(tool);
    });
  }

  /** Ends a server after its jobs. */
  retire(server: ForkServer): void {
    const ended = server.close().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

/** Ordinary exits (pdfinfo: 99, dwebp: 255). ImageMagick exits with the number of a signal. */
const ORDINARY: readonly (number | undefined)[] = [0, 1, 99, 255];

/** Returns whether a job may have been a failed attack, which learned the layout of the memory. */
const hasCrashed = ({ exit }: JobEnd): boolean => !exit.error && !ORDINARY.includes(exit.exitCode);

/** Identifies the state of files and folders. */
export async function signatureOf(paths: readonly string[]): Promise<string> {
  const states = paths.map(async (path) => {
    const info = await stat(path).catch(() => undefined);
    return info ? `${info.ino} ${info.size} ${info.mtimeMs}` : '';
  });
  return (await Promise.all(states)).join('\n');
}
