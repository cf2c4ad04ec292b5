// @full
import { expect } from 'chai';
import { sendForm } from '../helpers/client.ts';
import { type Daemon, freePorts, startRedis } from '../helpers/daemons.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

describe('rate limit with REDIS_URL', () => {
  const services: OwnService[] = [];
  let redis: Daemon | undefined;
  let port = 0;
  beforeEach(async () => {
    [port = 0] = await freePorts(1);
  });
  afterEach(async () => {
    for (const service of services.splice(0)) await service.stop();
    await redis?.stop();
    redis = undefined;
  });

  const start = async (): Promise<OwnService> => {
    const settings = { REDIS_URL: `redis://127.0.0.1:${port}`, RATE_LIMIT_PER_MINUTE: '5' };
    const service = await startService(settings);
    services.push(service);
    return service;
  };
  const health = ({ base }: OwnService) => sendForm(`${base}/health`);
  const left = async (service: OwnService) => {
    const { headers } = await health(service);
    return Number(headers.get('x-ratelimit-remaining'));
  };
  const countsTogether = (service: OwnService) =>
    eventually(async () => /^imagemill_rate_limit_shared 1$/m.test(await metrics(service)));
  const countsAlone = (service: OwnService) =>
    eventually(async () => /^imagemill_rate_limit_shared 0$/m.test(await metrics(service)));
  const metrics = async ({ base }: OwnService) =>
    (await sendForm(new URL('/metrics', base).href)).body.toString();
  const messages = ({ logged }: OwnService, level: number) =>
    logged.filter((line) => line.level === level).map(({ msg }) => String(msg));

  it('is shared by all instances and sends the same headers', async () => {
    redis = await startRedis(port);
    const [one, other] = [await start(), await start()];
    const before = Math.floor(Date.now() / 1000);
    const seen = [];
    for (const service of [one, other, one, other, one]) seen.push(await left(service));
    expect(seen).to.deep.equal([4, 3, 2, 1, 0]);
    const { status, headers, message } = await health(other);
    const wait = Number(headers.get('retry-after'));
    expect(status).to.equal(429);
    const after = Math.ceil(Date.now() / 1000);
    expect(wait).to.be.within(60 - (after - before), 60);
    expect(message).to.equal(`Too many requests: at most 5 per minute. Try again in ${wait} seconds.`);
    expect(headers.get('x-ratelimit-limit')).to.equal('5');
    expect(Number(headers.get('x-ratelimit-reset'))).to.be.within(before + 59, after + 61);
  });

  it('falls back to local counters with a warning when Redis is down, and recovers', async () => {
    redis = await startRedis(port);
    const service = await start();
    expect([await left(service), await left(service)]).to.deep.equal([4, 3]);
    await redis.stop();
    expect([await left(service), await left(service)]).to.deep.equal([2, 1]);
    await countsAlone(service);
    const warnings = messages(service, 40).filter((message) => message.includes('Redis'));
    expect(warnings).to.deep.equal(['Redis does not respond: this instance counts requests on its own']);
    redis = await startRedis(port);
    await countsTogether(service);
    expect(await left(service)).to.equal(4); // the new Redis starts without counters
    expect(messages(service, 30)).to.include('rate limit is shared with the other instances');
  });

  it('starts without Redis, counts locally, and shares the counters once Redis is up', async () => {
    const service = await start();
    expect([await left(service), await left(service)]).to.deep.equal([4, 3]);
    await countsAlone(service);
    redis = await startRedis(port);
    await countsTogether(service);
    const other = await start();
    expect([await left(service), await left(other)]).to.deep.equal([4, 3]);
  });

  it('waits for an unresponsive Redis only once', async () => {
    redis = await startRedis(port);
    const service = await start();
    redis.child.kill('SIGSTOP');
    const answers = await Promise.all([health(service), health(service), health(service)]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    await countsAlone(service);
    expect((await health(service)).status).to.equal(200);
    redis.child.kill('SIGCONT');
    await countsTogether(service);
  });
});
