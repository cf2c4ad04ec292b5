import { availableParallelism, tmpdir } from 'node:os';
import { expect } from 'chai';
import { ConfigError, loadConfig } from '../src/config.ts';

const problemsOf = (environment: Record<string, string>): readonly string[] => {
  try {
    loadConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe('the settings', () => {
  it('have the defaults that the README lists', () => {
    expect(loadConfig({})).to.deep.include({
      PORT: 3000,
      HOST: '0.0.0.0',
      SUPPORT_EMAIL: 'support@localhost',
      MAX_FILE_BYTES: 10485760,
      MAX_PIXELS: 50000000,
      MAX_TOTAL_PIXELS: 75000000,
      MAX_FRAMES: 500,
      SANDBOX: 'auto',
      RATE_LIMIT_PER_MINUTE: 60,
      TRUST_PROXY: false,
      CONCURRENCY: availableParallelism(),
      QUEUE_LIMIT: 200,
      CONVERT_TIMEOUT_MS: 30000,
      UPLOAD_TIMEOUT_MS: 60000,
      TEMP_DIR: tmpdir(),
      CORS_ORIGIN: '*',
      LOG_LEVEL: 'info',
      SHUTDOWN_GRACE_MS: 15000,
    });
  });

  it('are as if unset when empty', () => {
    expect(loadConfig({ PORT: '', CORS_ORIGIN: '', MAGICK_BIN: '', TRUST_PROXY: '' })).to.deep.equal(
      loadConfig({}),
    );
  });

  it('cannot be changed afterwards', () => {
    expect(Object.isFrozen(loadConfig({}))).to.equal(true);
  });

  it('are not disturbed by what else is in the environment', () => {
    expect(problemsOf({ HOME: '/root', FOO: 'bar' })).to.deep.equal([]);
  });

  it('report every problem at once, naming setting, value and what is expected', () => {
    expect(
      problemsOf({
        PORT: '70000',
        QUEUE_LIMIT: 'many',
        LOG_LEVEL: 'loud',
        TEMP_DIR: 'relative',
        TRUST_PROXY: 'proxy',
      }),
    ).to.deep.equal([
      'PORT="70000": expected a whole number from 0 to 65535',
      'TRUST_PROXY="proxy": expected true, false, a number of proxies, or a list of addresses and subnets',
      'QUEUE_LIMIT="many": expected a whole number from 0 to 100000',
      'TEMP_DIR="relative": expected an absolute path',
      'LOG_LEVEL="loud": expected one of fatal, error, warn, info, debug, trace, silent',
    ]);
  });

  for (const [value, meaning] of [
    ['true', true],
    ['false', false],
    ['2', 2],
    ['loopback, 10.0.0.0/8,2001:db8::/32', ['loopback', '10.0.0.0/8', '2001:db8::/32']],
  ] as const) {
    it(`read TRUST_PROXY=${value} as Express does`, () => {
      expect(loadConfig({ TRUST_PROXY: value }).TRUST_PROXY).to.deep.equal(meaning);
    });
  }

  for (const value of ['10.0.0.0/33', '10.0.0', 'yes', '10.0.0.1/8/8', ',', '::/129', '10.0.0.1/']) {
    it(`refuse TRUST_PROXY=${value}`, () => {
      expect(problemsOf({ TRUST_PROXY: value })).to.have.length(1);
    });
  }

  it('take a REDIS_URL of Redis, and show none that is wrong: it may hold a password', () => {
    expect(problemsOf({ REDIS_URL: 'rediss://user:secret@cache.example:6380' })).to.deep.equal([]);
    for (const wrong of ['http://user:secret@cache.example', 'user:secret@cache'])
      expect(problemsOf({ REDIS_URL: wrong })).to.deep.equal([
        'REDIS_URL="…": expected redis://host:port, or rediss:// for TLS',
      ]);
  });

  it('read CORS_ORIGIN as *, a list or off', () => {
    expect(loadConfig({ CORS_ORIGIN: '*' }).CORS_ORIGIN).to.equal('*');
    expect(loadConfig({ CORS_ORIGIN: 'off' }).CORS_ORIGIN).to.equal(false);
    expect(loadConfig({ CORS_ORIGIN: 'https://a.example, http://b.example:8080' }).CORS_ORIGIN).to.deep.equal(
      ['https://a.example', 'http://b.example:8080'],
    );
    for (const wrong of ['a.example', 'https://a.example/path', 'null'])
      expect(problemsOf({ CORS_ORIGIN: wrong })).to.have.length(1);
  });
});
