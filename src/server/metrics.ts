/** @module Prometheus metrics of the service. No label contains text from a client. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ConversionEvent } from '../conversion/context.ts';
import { KILL_REASONS, type KillReason, RENEWAL_REASONS, type RenewalReason } from '../conversion/engine.ts';
import { ERROR_CODES, ERRORS } from '../tables/error-table.ts';
import { ClientDisconnectedError, type ErrorCode, reasonOf, ServiceError } from '../tables/errors.ts';
import type { FinishedRequest } from './middleware.ts';

/** Records events of the service, and renders all metrics. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Gauges read on each scrape: the metric's name and help, by the name of the reading. */
const GAUGES = {
  waiting: [
    'conversions_waiting',
    'Conversions waiting in the queue, including those whose input is being prepared, and images waiting for /identify.',
  ],
  running: ['conversions_running', 'Conversions in progress.'],
  forkServers: ['fork_servers', 'Tools that run in a fork server, not by a new start for each image.'],
  reservedBytes: ['temp_reserved_bytes', 'Bytes in TEMP_DIR that requests in progress use or may still use.'],
  freeBytes: ['temp_free_bytes', 'Free bytes on the disk of TEMP_DIR.'],
} as const;

/** Values that are read on each scrape; undefined if they are unknown. */
type Readings = Readonly<Record<keyof typeof GAUGES, number | undefined>> & {
  /** Number of log lines dropped since the start. */
  readonly droppedLogLines: number;
};

export interface MetricsDeps {
  readonly version: string;
  readonly readGauges: () => Promise<Readings>;
  /** Whether to add metrics of the process, such as memory, CPU time and event loop lag. */
  readonly collectProcessMetrics: boolean;
}

/** Codes of errors that mean an overloaded or unavailable service. */
const OVERLOAD_CODES: readonly ErrorCode[] = ERROR_CODES.filter((code) => ERRORS[code].status === 503);

/** In seconds: from a small image (5 ms) to the default of CONVERT_TIMEOUT_MS (30 s). */
const CONVERSION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const REQUEST_BUCKETS = [...CONVERSION_BUCKETS, 60];
const WAIT_BUCKETS = [0.001, ...CONVERSION_BUCKETS];

/**
 * Registers all metrics. Names and units follow https://prometheus.io/docs/practices/naming/.
 * Counters that have a known set of labels start with 0, so that a scrape includes counters of
 * events that have not happened yet.
 */
function registerMetrics(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name: `imagemill_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name: `imagemill_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly L[] = [],
  ) => new Histogram({ name: `imagemill_${name}`, help, buckets, labelNames, registers });
  const countBy = (name: string, help: string, reasons: readonly string[]) => {
    const counted = counter(name, help, ['reason']);
    for (const reason of reasons) counted.inc({ reason }, 0);
    return counted;
  };

  return {
    requests: counter('http_requests_total', 'Finished requests.', ['route', 'status']),
    requestSeconds: histogram(
      'http_request_duration_seconds',
      'Time from the headers of a request to the end of its response.',
      REQUEST_BUCKETS,
      ['route', 'status'],
    ),
    received: counter('received_bytes_total', 'Bytes received, including headers.'),
    sent: counter('sent_bytes_total', 'Bytes sent, including headers.'),
    refused: countBy(
      'requests_refused_total',
      'Requests rejected because the service was overloaded or unavailable.',
      OVERLOAD_CODES.map(reasonOf),
    ),
    rateLimited: counter('rate_limited_total', 'Requests rejected by the rate limit.'),
    conversions: counter('conversions_total', 'Finished conversions.', ['input', 'output', 'result']),
    conversionSeconds: histogram(
      'conversion_duration_seconds',
      'Duration of conversions, without the time in the queue.',
      CONVERSION_BUCKETS,
      ['input', 'output', 'result'],
    ),
    waitSeconds: histogram('queue_wait_seconds', 'Time that conversions waited in the queue.', WAIT_BUCKETS),
    killed: countBy('tools_killed_total', 'Tools killed before they finished.', KILL_REASONS),
    renewals: countBy('fork_server_renewals_total', 'Fork servers replaced.', RENEWAL_REASONS),
    build: gauge('build_info', 'Versions of imagemill and Node.js, as labels. The value is always 1.', [
      'version',
      'node',
    ]),
    shared: gauge(
      'rate_limit_shared',
      '1 while the rate limit is shared with other instances, 0 while this instance counts on its own.',
    ),
    gauges: Object.entries(GAUGES).map(([reading, [name, help]]) => ({
      reading: reading as keyof typeof GAUGES,
      gauge: gauge(name, help),
    })),
    droppedLogLines: counter('log_lines_dropped_total', 'Log lines that could not be written.'),
  };
}

/** Creates the metrics, and the functions that record events in them. */
export function createMetrics({ version, readGauges, collectProcessMetrics }: MetricsDeps) {
  const registry = new Registry();
  if (collectProcessMetrics) collectDefaultMetrics({ register: registry });
  // Gauges named like counters. Those without `_total` have the same numbers.
  for (const kind of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  const metrics = registerMetrics(registry);
  metrics.build.set({ version, node: process.version }, 1);

  return {
    request({ route, status, seconds, bytesIn, bytesOut, outcome }: FinishedRequest): void {
      metrics.requests.inc({ route, status });
      metrics.requestSeconds.observe({ route, status }, seconds);
      metrics.received.inc(bytesIn);
      metrics.sent.inc(bytesOut);
      if (outcome === 'RATE_LIMITED') metrics.rateLimited.inc();
      const overload = OVERLOAD_CODES.find((code) => code === outcome);
      if (overload) metrics.refused.inc({ reason: reasonOf(overload) });
    },
    /** Records a finished or rejected conversion, but not those of the health check. */
    conversion({ client, input, output, error, queuedMs, ranMs }: ConversionEvent): void {
      if (client === undefined) return; // the health check
      const labels = { input, output, result: formatResult(error) };
      metrics.conversions.inc(labels);
      if (ranMs !== undefined) metrics.conversionSeconds.observe(labels, ranMs / 1000);
      if (queuedMs !== undefined) metrics.waitSeconds.observe(queuedMs / 1000);
    },
    toolKilled: (reason: KillReason): void => metrics.killed.inc({ reason }),
    serverRenewed: (reason: RenewalReason): void => metrics.renewals.inc({ reason }),
    /** Records whether the rate limit is shared with other instances from now on. */
    rateLimitShared: (now: boolean): void => metrics.shared.set(now ? 1 : 0),
    /** Returns all metrics as text, with the media type. */
    async render(): Promise<{ readonly type: string; readonly text: string }> {
      const readings = await readGauges();
      for (const { reading, gauge } of metrics.gauges) {
        const value = readings[reading];
        if (value !== undefined) gauge.set(value);
      }
      metrics.droppedLogLines.reset();
      metrics.droppedLogLines.inc(readings.droppedLogLines);
      return { type: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Returns the `result` label of a conversion: `ok`, or the error code in lower case. */
function formatResult(error: unknown): string {
  if (error === undefined) return 'ok';
  if (error instanceof ClientDisconnectedError) return 'client_gone';
  return reasonOf(error instanceof ServiceError ? error.code : 'INTERNAL');
}
