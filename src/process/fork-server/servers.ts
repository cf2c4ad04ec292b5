/**
 * @module The fork servers of all tools. A server is replaced after a number of jobs or some time, because its children share
 * one layout of the address space, and because it does not see updates of the tool.
 */
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { JobEnd, RunningJob } from '../start.ts';
import {
  type ForkServer,
  type Job,
  NotStartedError,
  type ServerOptions,
  ServerRefusedError,
  startServer,
} from './server.ts';

/** Number of jobs after which a server is replaced. */
const MAX_JOBS = 1_000;
/** Age at which a server is replaced, in ms. */
const MAX_AGE_MS = 3_600_000;
/**
 * Backoff before replacing a server whose child crashed, in ms. There is none after the first crash. Then it doubles from the first
 * value to the second one, until a server has run for `CALM_MS` without a crash.
 */
const [MIN_BACKOFF_MS, MAX_BACKOFF_MS, CALM_MS] = [10, 80, 60_000];
/** Minimum time between two checks for changed files, in ms. */
const CHECK_INTERVAL_MS = 5_000;

/** Reason of a server that could create its namespaces, but not use them. */
const NO_NAMESPACES = 'namespaces';

/** A tool that a server runs. */
export interface ServedTool extends Pick<ServerOptions, 'file' | 'prepare'> {
  /** Files and folders whose change makes a new server necessary. */
  readonly dependencies: readonly string[];
}

/** Reason why a server was replaced. */
export const RENEWAL_REASONS = ['jobs', 'age', 'changed', 'crash', 'ended'] as const;
export type RenewalReason = (typeof RENEWAL_REASONS)[number];

export interface ForkServersOptions extends Omit<ServerOptions, 'file' | 'prepare' | 'namespaces'> {
  readonly tools: readonly ServedTool[];
  /** Called when a server has been replaced. */
  readonly onRenewal?: (reason: RenewalReason) => void;
  /** Called when a tool cannot be a server, and is started for each image instead. */
  readonly onRefused?: (file: string, error: Error) => void;
  readonly maxJobs?: number;
  readonly maxAgeMs?: number;
  /** Waits for a backoff, in ms. */
  readonly wait?: (ms: number) => Promise<unknown>;
}

export type ForkServers = ReturnType<typeof createForkServers>;

/** Creates the fork servers of all tools. None starts before `start` is called. */
export function createForkServers(options: ForkServersOptions) {
  const { tools, onRenewal = () => {}, onRefused = () => {} } = options;
  const { maxJobs = MAX_JOBS, maxAgeMs = MAX_AGE_MS, wait = delay } = options;
  const toolServers = new Map<string, ReturnType<typeof createToolServer>>();
  const ending = new Set<Promise<void>>();
  let closed = false;
  /** Namespaces work for all servers or for none. */
  let namespaces = true;

  async function open(tool: ServedTool): Promise<ForkServer> {
    if (closed) throw new Error('the fork servers are closed');
    const { library, env, concurrency } = options;
    const { file, prepare } = tool;
    return startServer({ library, env, file, prepare, namespaces, concurrency }).catch((error) => {
      if (!namespaces || error.message !== NO_NAMESPACES) throw error;
      namespaces = false;
      return open(tool);
    });
  }

  function retire(server: ForkServer): void {
    const ended = server.close().finally(() => ending.delete(ended));
    ending.add(ended);
  }

  /** Keeps one server of a tool, and replaces it when necessary. */
  function createToolServer(tool: ServedTool) {
    let current: ForkServer | undefined;
    let starting: Promise<ForkServer> | undefined;
    let signature = '';
    let checkedAt = 0;
    let [crashedAt, backoffMs] = [Number.NEGATIVE_INFINITY, 0];

    function replace(waitMs = 0): Promise<ForkServer> {
      starting ??= (async () => {
        try {
          if (waitMs > 0) await wait(waitMs);
          signature = await signatureOf(tool.dependencies);
          const server = await open(tool);
          if (current) retire(current);
          current = server;
          if (closed) retire(server);
          return server;
        } finally {
          starting = undefined;
        }
      })();
      return starting;
    }

    function renew(reason: RenewalReason): void {
      if (closed || starting) return;
      onRenewal(reason);
      replace().catch(() => {}); // the old server continues, or the next job tries again
    }

    async function checkFiles(): Promise<void> {
      if (performance.now() - checkedAt < CHECK_INTERVAL_MS) return;
      checkedAt = performance.now();
      if ((await signatureOf(tool.dependencies)) !== signature) renew('changed');
    }

    async function acquire(): Promise<ForkServer> {
      if (!current?.alive) {
        if (current) onRenewal('ended');
        current = undefined;
        return replace();
      }
      const server = current;
      if (server.started >= maxJobs) renew('jobs');
      else if (performance.now() - server.startedAt >= maxAgeMs) renew('age');
      else void checkFiles();
      return server;
    }

    /** Replaces a server whose child crashed, before any other job runs in it. Jobs wait for the new one. */
    function discard(server: ForkServer): void {
      if (current !== server || closed) return;
      current = undefined;
      retire(server);
      onRenewal('crash');
      const isCalm = performance.now() - crashedAt > CALM_MS;
      backoffMs = isCalm ? 0 : Math.min(Math.max(2 * backoffMs, MIN_BACKOFF_MS), MAX_BACKOFF_MS);
      crashedAt = performance.now();
      replace(backoffMs).catch(() => {});
    }

    return {
      replace,
      get current() {
        return current;
      },
      /** Runs a job in the current server, or in the next one if that is closed before the job has a place in it. */
      async run(job: Job): Promise<RunningJob> {
        for (;;) {
          const server = await acquire();
          const running = await server.run(job).catch((error) => {
            if (!(error instanceof NotStartedError)) throw error;
          });
          if (running) return discardOnCrash(running, () => discard(server));
        }
      },
      close() {
        if (current) retire(current);
        return starting;
      },
    };
  }

  return {
    /** Starts the servers. Those that refuse are reported, and their tools are not served. */
    async start(): Promise<void> {
      const begin = async (tool: ServedTool): Promise<void> => {
        const toolServer = createToolServer(tool);
        try {
          await toolServer.replace();
          toolServers.set(tool.file, toolServer);
        } catch (error) {
          if (!(error instanceof ServerRefusedError)) throw error;
          onRefused(tool.file, error);
        }
      };
      await Promise.all(tools.map(begin));
    },
    /** Returns whether a server runs this program. */
    serves: (file: string): boolean => toolServers.has(file),
    /**
     * Runs a job in a server of its program. If the server ends before it has started the job, another one runs it.
     *
     * @throws {Error} with the code of errno(3) if the server cannot be started
     */
    async run(job: Job, file: string): Promise<RunningJob> {
      const toolServer = toolServers.get(file);
      if (!toolServer) throw new Error(`no fork server runs ${file}`);
      let running = await toolServer.run(job);
      let killed = false;
      const repeatUnlessStarted = async (end: JobEnd): Promise<JobEnd> => {
        if (killed || !(end.exit.error instanceof NotStartedError)) return end;
        running = await toolServer.run(job);
        if (killed) running.kill();
        return running.ended;
      };
      return {
        kill() {
          killed = true;
          running.kill();
        },
        ended: running.ended.then((end) =>
          repeatUnlessStarted(end).catch((error) => ({ ...end, exit: { error } })),
        ),
      };
    },
    /** Number of tools that are served. */
    get count(): number {
      return toolServers.size;
    },
    /** Whether all servers have namespaces of their own. */
    get isolated(): boolean {
      return (
        toolServers.size > 0 && [...toolServers.values()].every(({ current }) => current?.isolated ?? true)
      );
    },
    /** Ends all servers after their jobs. */
    async close(): Promise<void> {
      closed = true;
      await Promise.allSettled([...toolServers.values()].map((toolServer) => toolServer.close()));
      await Promise.allSettled(ending);
    },
  };
}

/**
 * Exit statuses of success and ordinary failures (pdfinfo: 99, dwebp: 255). ImageMagick's handlers exit with the number of a fatal
 * signal.
 */
const ORDINARY: readonly (number | undefined)[] = [0, 1, 99, 255];

/** Returns whether a job may have been an attack that failed. It could have learned the layout of the address space. */
const hasCrashed = ({ exit }: JobEnd): boolean => !exit.error && !ORDINARY.includes(exit.exitCode);

/** Calls `onCrash` when a job ends by a crash, unless it was killed. */
function discardOnCrash({ kill, ended }: RunningJob, onCrash: () => void): RunningJob {
  let killed = false;
  return {
    kill() {
      killed = true;
      kill();
    },
    ended: ended.then((end) => {
      if (!killed && hasCrashed(end)) onCrash();
      return end;
    }),
  };
}

/** Identifies the state of files and folders. */
async function signatureOf(paths: readonly string[]): Promise<string> {
  const states = paths.map((path) =>
    stat(path).then(
      ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
      () => '',
    ),
  );
  return (await Promise.all(states)).join('\n');
}
