// @full
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { convert, fixture, formOf, sendBatch, sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startProcess } from '../helpers/process.ts';
import { startService, useOwnServices } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

const DASHBOARD = new URL('../../docker/grafana/imagemill.json', import.meta.url);

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses all samples of Prometheus' text format. */
function samplesIn(text: string): Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    expect(name, line).not.to.equal('');
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, word]) => [key, word]);
    return { name, labels: Object.fromEntries(pairs), value: Number(value) };
  });
}

describe('GET /metrics', () => {
  const { start, current } = useOwnServices();
  /**
   * Bytes that the service has sent for metrics, which count, too; at least those of the bodies.
   */
  let scraped = { requests: 0, bytes: 0 };
  beforeEach(() => {
    scraped = { requests: 0, bytes: 0 };
  });
  const scrape = async (): Promise<Sample[]> => {
    const { status, headers, body } = await sendForm(new URL('/metrics', current().base).href);
    scraped = { requests: scraped.requests + 1, bytes: scraped.bytes + body.length };
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
    return samplesIn(body.toString());
  };
  const value = (samples: readonly Sample[], name: string, labels: Record<string, string> = {}) =>
    samples.find(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, word]) => sample.labels[key] === word),
    )?.value;
  /**
   * Scrapes until a sample has a value: the service counts a request slightly after the client has
   * its answer.
   */
  const scrapeUntil = (name: string, labels: Record<string, string>, wanted: number) =>
    eventually(async () => {
      const samples = await scrape();
      return value(samples, name, labels) === wanted && samples;
    });

  it('counts requests by route and status, their bytes and their duration', async () => {
    await start({});
    const photo = await fixture('scene.jpg');
    const { body } = await convert(current().base, photo, { format: 'png' });
    await convert(current().base, photo, { format: 'png', quality: '0' });
    const route = '/api/v1/convert';
    await scrapeUntil('imagemill_http_requests_total', { route, status: '400' }, 1);
    const samples = await scrapeUntil('imagemill_http_requests_total', { route, status: '200' }, 1);
    const duration = 'imagemill_http_request_duration_seconds';
    expect(value(samples, `${duration}_count`, { route, status: '200' })).to.equal(1);
    expect(value(samples, `${duration}_sum`, { route, status: '200' })).to.be.above(0);
    /** Maximum size of the headers of the two conversions and of all requests for metrics. */
    const heads = 1000 * (2 + scraped.requests);
    expect(value(samples, 'imagemill_received_bytes_total')).to.be.within(
      2 * photo.length,
      2 * photo.length + heads,
    );
    expect(value(samples, 'imagemill_sent_bytes_total')).to.be.within(
      body.length,
      body.length + scraped.bytes + heads,
    );
  });

  it('counts conversions by input, output and result, their duration and their queue wait', async () => {
    await start({});
    await convert(current().base, await fixture('scene.jpg'), { format: 'png' });
    await convert(current().base, (await fixture('scene.png')).subarray(0, 100));
    const samples = await scrape();
    const ok = { input: 'jpg', output: 'png', result: 'ok' };
    expect(value(samples, 'imagemill_conversions_total', ok)).to.equal(1);
    expect(value(samples, 'imagemill_conversion_duration_seconds_count', ok)).to.equal(1);
    expect(value(samples, 'imagemill_conversion_duration_seconds_sum', ok)).to.be.above(0);
    const corrupt = { input: 'png', output: 'webp', result: 'corrupt_image' };
    expect(value(samples, 'imagemill_conversions_total', corrupt)).to.equal(1);
    expect(value(samples, 'imagemill_queue_wait_seconds_count')).to.equal(2);
  });

  it('reports running and queued conversions, refused requests, disk reservations and killed tools', async () => {
    const folder = await makeTempDir('gate');
    await start({
      MAGICK_BIN: await fakeMagick(`echo >> ${folder}/begun; sleep 60`),
      CONCURRENCY: '1',
      QUEUE_LIMIT: '1',
    });
    const client = new AbortController();
    const photo = await fixture('scene.jpg');
    const send = () =>
      fetch(`${current().base}/convert`, {
        method: 'POST',
        body: formOf({}, [['a.jpg', photo]]),
        signal: client.signal,
      }).catch(() => undefined);
    const first = send();
    await eventually(() => readFile(join(folder, 'begun')).catch(() => undefined));
    const second = send();
    const busy = await scrapeUntil('imagemill_conversions_waiting', {}, 1);
    expect(value(busy, 'imagemill_conversions_running')).to.equal(1);
    // Both inputs, and space for the largest possible result of the running conversion.
    expect(value(busy, 'imagemill_temp_reserved_bytes')).to.be.within(
      2 * photo.length + 64 * 1024,
      2 * photo.length + 128 * 1024,
    );
    expect(value(busy, 'imagemill_temp_free_bytes')).to.be.above(0);
    expect((await convert(current().base, photo)).status).to.equal(503);
    await scrapeUntil('imagemill_requests_refused_total', { reason: 'queue_full' }, 1);

    client.abort();
    await Promise.all([first, second]);
    await scrapeUntil('imagemill_tools_killed_total', { reason: 'cancelled' }, 1);
    const idle = await scrapeUntil('imagemill_temp_reserved_bytes', {}, 0);
    expect(value(idle, 'imagemill_conversions_running')).to.equal(0);
    expect(value(idle, 'imagemill_conversions_waiting')).to.equal(0);
    await scrapeUntil('imagemill_http_requests_total', { route: '/api/v1/convert', status: '499' }, 2);
  });

  it('are rendered at most once a second', async () => {
    let now = 0;
    await using service = await startService({}, () => now);
    const text = async () => (await sendForm(new URL('/metrics', service.base).href)).body.toString();
    const first = await text();
    await sendForm(`${service.base}/health`);
    now = 999;
    expect(await text()).to.equal(first);
    now = 1000;
    expect(await text()).not.to.equal(first);
  });

  it('counts tools killed by the timeout', async () => {
    await start({ MAGICK_BIN: await fakeMagick('sleep 60'), CONVERT_TIMEOUT_MS: '200' });
    expect((await convert(current().base, await fixture('scene.jpg'))).status).to.equal(413);
    const samples = await scrape();
    expect(value(samples, 'imagemill_tools_killed_total', { reason: 'timeout' })).to.equal(1);
    expect(value(samples, 'imagemill_conversions_total', { result: 'conversion_timeout' })).to.equal(1);
  });

  it('is exempt from the rate limit, counts its rejections and ignores probe conversions', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '1' });
    const statuses = [];
    for (const _ of [1, 2, 3]) statuses.push((await sendForm(`${current().base}/health`)).status);
    expect(statuses).to.deep.equal([200, 429, 429]);
    expect((await sendForm(new URL('/readyz', current().base).href)).status).to.equal(200);
    const samples = await scrapeUntil('imagemill_rate_limited_total', {}, 2);
    expect(samples.filter(({ name }) => name === 'imagemill_conversions_total')).to.deep.equal([]);
  });

  it('has one route label for all unknown paths', async () => {
    await start({});
    const { origin } = new URL(current().base);
    const paths = ['/secret', '/api/v1/secret.jpg', '/metricsx', '/api/v1/convert/secret'];
    for (const path of paths) await sendForm(`${origin}${path}`, { method: 'POST' });
    await sendForm(`${origin}/?secret`);
    await scrapeUntil('imagemill_http_requests_total', { route: '/' }, 1);
    const samples = await scrapeUntil('imagemill_http_requests_total', { route: 'other' }, paths.length);
    expect(JSON.stringify(samples)).not.to.include('secret');
  });

  it('has every metric and label that the Grafana dashboard queries, and the dashboard shows every metric', async () => {
    await using service = startProcess({ TEMP_DIR: await makeTempDir('dashboard') });
    const base = await service.base();
    await convert(base, await fixture('scene.jpg'));
    const { body } = await sendForm(new URL('/metrics', base).href);
    const text = body.toString();
    const samples = samplesIn(text);
    // A rule of `promtool check metrics`.
    const others = [...text.matchAll(/^# TYPE (\w+) (?!counter)/gm)].map(([, name]) => name);
    expect(others.filter((name) => name?.endsWith('_total'))).to.deep.equal([]);
    const { panels } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as {
      panels: { targets?: { expr: string }[] }[];
    };
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(queries).to.have.length.above(20);
    for (const query of queries) {
      const [, name = '', matchers = ''] = /(\w+)\{([^}]*)\}/.exec(query) ?? [];
      const [, groups = ''] = /by \(([^)]*)\)/.exec(query) ?? [];
      const labels = [
        ...[...matchers.matchAll(/(\w+)(?==|!)/g)].map(([word]) => word),
        ...groups.split(/, */),
      ];
      const own = labels.filter((label) => label !== '' && !['job', 'instance'].includes(label));
      const meant = samples.find((sample) => sample.name === name);
      expect(Object.keys(meant?.labels ?? { none: true }), query).to.include.members(own);
      expect(meant, query).not.to.equal(undefined);
    }
    for (const { name } of samples.filter(({ name }) => name.startsWith('imagemill_'))) {
      const asked = name.replace(/_(sum|count)$/, '_bucket');
      expect(queries.join('\n'), 'on the dashboard').to.include(asked);
    }
  });
});

describe('the request log', () => {
  const { start, current } = useOwnServices();
  const lineOf = (requestId: string) =>
    eventually(() =>
      current().logged.find((line) => line.msg === 'request completed' && line.requestId === requestId),
    );

  it('has one line per request with its ID, types, bytes, durations and outcome', async () => {
    await start({});
    const photo = await fixture('scene.jpg');
    const { headers, body } = await convert(current().base, photo, { format: 'png' });
    const line = await lineOf(String(headers.get('x-request-id')));
    expect(line).to.include({
      level: 30,
      method: 'POST',
      route: '/api/v1/convert',
      status: 200,
      outcome: 'OK',
      input: 'jpg',
      output: 'png',
      files: 1,
    });
    expect(line.bytesIn).to.be.within(photo.length, photo.length + 2000);
    expect(line.bytesOut).to.be.within(body.length, body.length + 2000);
    for (const duration of ['ms', 'uploadMs', 'queueMs', 'prepareMs', 'convertMs'])
      expect(line[duration], duration).to.be.a('number');
    expect(Number(line.convertMs)).to.be.within(1, Number(line.ms));
  });

  for (const [settings, address] of [
    [{}, undefined],
    [{ LOG_CLIENT_ADDRESS: 'on' }, '2001:db8::7'],
    [{ LOG_CLIENT_ADDRESS: 'on', TRUST_PROXY: 'false' }, '127.0.0.1'],
  ] as const)
    it(`has the address ${address} with ${JSON.stringify(settings)} behind a proxy`, async () => {
      await start({ TRUST_PROXY: '1', ...settings });
      const headers = { 'x-request-id': 'forwarded', 'x-forwarded-for': '203.0.113.9, 2001:db8::7' };
      await sendForm(new URL('/nothing', current().base).href, { headers });
      expect((await lineOf('forwarded')).address).to.equal(address);
    });

  it('states why a request failed and that a client disconnected', async () => {
    await start({});
    const { headers } = await convert(current().base, Buffer.from('text'));
    expect(await lineOf(String(headers.get('x-request-id')))).to.include({
      status: 415,
      outcome: 'UNSUPPORTED_TYPE',
    });
    const socket = connect(Number(new URL(current().base).port), '127.0.0.1');
    socket.write(
      'POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nX-Request-Id: left\r\nContent-Length: 9999\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n',
      () => socket.destroy(),
    );
    expect(await lineOf('left')).to.include({ status: 499, outcome: 'CLIENT_GONE' });
  });

  it('contains no file names and no image content above debug', async () => {
    await start({ CONVERT_TIMEOUT_MS: '300', MAGICK_BIN: await fakeMagick('cat image* >&2; sleep 60') });
    const secret = 'holiday-with-anna';
    const photo = Buffer.concat([await fixture('scene.jpg'), Buffer.from(secret)]);
    for (const bytes of [photo, Buffer.from('text'), Buffer.alloc(0)]) {
      expect((await sendBatch(current().base, [[`${secret}.jpg`, bytes]])).status).to.be.above(399);
      await convert(current().base, bytes, {}, `${secret}.jpg`);
    }
    await sendForm(`${current().base}/${secret}?${secret}`);
    await eventually(() => current().logged.filter(({ msg }) => msg === 'request completed').length === 7);
    const lines = current().logged.filter(({ level }) => Number(level) >= 30);
    expect(lines.filter((line) => JSON.stringify(line).includes(secret))).to.deep.equal([]);
  });
});
