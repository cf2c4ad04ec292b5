/**
 * @module Tests of `docker/prometheus/alerts.yaml` with promtool, the test program of Prometheus.
 */
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createMetrics } from '../../src/server/metrics.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { documentAt, tableRows } from '../helpers/markdown.ts';
import { requires } from '../helpers/skips.ts';

const ALERTS = fileURLToPath(new URL('../../docker/prometheus/alerts.yaml', import.meta.url));

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

const rules = async (): Promise<readonly Rule[]> => parse(await readFile(ALERTS, 'utf8')).groups[0].rules;

/**
 * Samples of a metric: its name and labels, and the values, one each 15 s, in the notation of
 * promtool.
 */
type Series = Readonly<Record<string, string>>;

const a = 'job="imagemill",instance="a:3000"';
const b = 'job="imagemill",instance="b:3000"';
const requests = (route: string, status: number, values: string): Series => ({
  [`imagemill_http_requests_total{${a},route="${route}",status="${status}"}`]: values,
});
/**
 * Counts of the buckets of the time in the queue. Of 100 conversions per sample, `fast` wait for
 * less than 5 s.
 */
const waits = (fast: number): Series =>
  Object.fromEntries(
    Object.entries({ 1: fast, 5: fast, 10: 100, '+Inf': 100 }).map(([le, count]) => [
      `imagemill_queue_wait_seconds_bucket{${a},le="${le}"}`,
      `0+${count}x80`,
    ]),
  );
const killed = (reason: string, values: string): Series => ({
  [`imagemill_tools_killed_total{${a},reason="${reason}"}`]: values,
});
const refused = (reason: string): Series => ({
  [`imagemill_requests_refused_total{${a},reason="${reason}"}`]: '0+1x80',
});
const shared = (...values: readonly number[]): Series =>
  Object.fromEntries(
    [a, b]
      .slice(0, values.length)
      .map((labels, at) => [`imagemill_rate_limit_shared{${labels}}`, `${values[at]}x80`]),
  );

/**
 * For each alert, series of 20 minutes at whose end it must fire, and others at whose end it must
 * not.
 */
const CASES: Readonly<
  Record<string, { readonly fires: readonly Series[]; readonly silent: readonly Series[] }>
> = {
  ImagemillErrors: {
    fires: [
      { ...requests('/api/v1/convert', 200, '0+98x80'), ...requests('/api/v1/convert', 500, '0+2x80') },
    ],
    silent: [
      { ...requests('/api/v1/convert', 200, '0+1000x80'), ...requests('/api/v1/convert', 500, '0+2x80') },
      { ...requests('/api/v1/convert', 200, '0+10x80'), ...requests('/api/v1/convert', 503, '0+10x80') },
      { ...requests('/api/v1/convert', 200, '0+10x80'), ...requests('/api/v1/convert', 500, '1x70 4x10') },
    ],
  },
  ImagemillQueueWait: { fires: [waits(90)], silent: [waits(99), waits(100)] },
  ImagemillToolsKilled: {
    fires: [killed('timeout', '0+1x80'), killed('signal', '0x60 10x20')],
    silent: [killed('cancelled', '0+10x80'), killed('timeout', '0x60 3x20')],
  },
  ImagemillFolderFull: {
    fires: [
      refused('disk_full'),
      refused('temp_dir_unwritable'),
      { [`imagemill_temp_free_bytes{${a}}`]: '10e6x80' },
    ],
    silent: [refused('queue_full'), { [`imagemill_temp_free_bytes{${a}}`]: '1e9x80' }],
  },
  ImagemillNotReady: {
    fires: [{ [`up{${a}}`]: '1x40 0x40' }, { [`up{${a}}`]: '1x80', ...requests('/readyz', 503, '0+1x80') }],
    silent: [
      {
        [`up{${a}}`]: '1x80',
        ...requests('/readyz', 200, '0+1x80'),
        ...requests('/readyz', 503, '0x77 2x3'),
      },
      { 'up{job="other",instance="c:80"}': '0x80' },
    ],
  },
  ImagemillRateLimitUnshared: { fires: [shared(1, 0), shared(0, 0)], silent: [shared(0), shared(1, 1)] },
};

describe('docker/prometheus/alerts.yaml', () => {
  const promtool = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' });

  it('has the six alerts that docs/deployment.md lists', async () => {
    const [, ...rows] = tableRows(documentAt('docs/deployment.md').text, '## Metrics');
    const names = (await rules()).map(({ alert }) => alert);
    expect(names).to.deep.equal(rows.map(([name = '']) => name.replaceAll('`', '')));
    expect(names).to.have.members(Object.keys(CASES)).and.have.length(6);
  });

  it('asks only for metrics and reasons that the service has', async () => {
    const readGauges = async () => ({
      waiting: 0,
      running: 0,
      forkServers: 0,
      reservedBytes: 0,
      freeBytes: 0,
      droppedLogLines: 0,
    });
    const { text } = await createMetrics({ version: '0', readGauges, collectProcessMetrics: false }).render();
    const expressions = (await rules()).map(({ expr }) => expr).join('\n');
    const names = expressions.match(/imagemill_\w+/g) ?? [];
    const reasons = [...expressions.matchAll(/reason[=!~]+"([^"]*)"/g)].flatMap(([, list = '']) =>
      list.split('|'),
    );
    expect([names.length, reasons.length]).to.deep.equal([9, 3]);
    for (const name of names) expect(text).to.include(`# TYPE ${name.replace(/_bucket$/, '')} `);
    for (const reason of reasons) expect(text).to.include(`reason="${reason}"`);
  });

  it('fires in each of the cases that it is for, and not in others', async function () {
    requires(this, 'promtool', promtool('--version').status === 0);
    const tests = Object.entries(CASES).flatMap(([alertname, { fires, silent }]) =>
      [...fires, ...silent].map((series, at) => ({
        interval: '15s',
        name: `${alertname} ${at}`,
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        // promtool compares the labels of alerts, so a count tells whether there is one.
        promql_expr_test: [
          {
            expr: `count(ALERTS{alertname="${alertname}",alertstate="firing"}) > bool 0 or vector(0)`,
            eval_time: '20m',
            exp_samples: [{ labels: '{}', value: at < fires.length ? 1 : 0 }],
          },
        ],
      })),
    );
    const file = join(await makeTempDir('alerts'), 'tests.json');
    await writeFile(file, JSON.stringify({ rule_files: [ALERTS], evaluation_interval: '15s', tests }));
    const { stdout, stderr } = promtool('test', 'rules', file);
    expect(`${stdout}${stderr}`).to.match(/^Unit Testing: +\S+\n +SUCCESS\s*$/);
  });
});
