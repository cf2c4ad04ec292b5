// @unit
import { availableParallelism, totalmem } from 'node:os';
import { expect } from 'chai';
import fc from 'fast-check';
import { createRedisClient as createRedisConnection } from '../../src/base/redis-client.ts';
import { loadLocalSettings } from '../../src/cli/context.ts';
import { ConfigError, listMisspelled, listWithoutEffect, loadConfig } from '../../src/tables/config.ts';

const problemsOf = (environment: Record<string, string>): readonly string[] => {
  try {
    loadConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe('loadConfig', () => {
  it('treats an empty value as unset', () => {
    expect(loadConfig({ PORT: '', CORS_ORIGIN: '', MAGICK_BIN: '', TRUST_PROXY: '' })).to.deep.equal(
      loadConfig({}),
    );
  });

  it('ignores other environment variables', () => {
    expect(problemsOf({ HOME: '/root', FOO: 'bar' })).to.deep.equal([]);
  });

  it('reports all problems at once, with setting, value and expectation', () => {
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

  it('reports a value with control characters on one line, and truncates a long one', () => {
    expect(problemsOf({ PORT: '\n\u001b[31m', QUEUE_LIMIT: 'x'.repeat(9000) })).to.deep.equal([
      'PORT="\ufffd\ufffd[31m": expected a whole number from 0 to 65535',
      `QUEUE_LIMIT="${'x'.repeat(200)}…": expected a whole number from 0 to 100000`,
    ]);
  });

  it('takes the limits of ACCESS=private, except those that are set, and rejects another access', () => {
    const config = loadConfig({ ACCESS: 'private', MAX_BATCH_FILES: '3', RATE_LIMIT_PER_MINUTE: '' });
    expect(config).to.include({
      MAX_BATCH_FILES: 3,
      RATE_LIMIT_PER_MINUTE: 0,
      MAX_FILE_BYTES: 200 * 1024 ** 2,
      EXTRA_INPUTS: 'all',
      EXTRA_OUTPUTS: 'all',
      UPLOAD_TIMEOUT_MS: 600_000,
    });
    const memory = Math.floor(totalmem() / 32);
    // A container may have less memory than the machine.
    expect(config.MAX_PIXELS).to.be.within(50_000_000, Math.max(50_000_000, Math.min(memory, 16_384 ** 2)));
    if (process.constrainedMemory() >= 4e9 && totalmem() >= 4e9)
      expect(config.MAX_PIXELS).to.be.at.least(100_000_000);
    expect(config.MAX_TOTAL_PIXELS).to.equal(Math.floor(1.5 * config.MAX_PIXELS));
    expect(problemsOf({ ACCESS: 'Private' })).to.deep.equal([
      'ACCESS="Private": expected one of public, private',
    ]);
  });

  it('keeps all other settings with ACCESS=private as they are with ACCESS=public', () => {
    const [open, closed] = [loadConfig({}), loadConfig({ ACCESS: 'private' })];
    const changed = Object.entries(open).filter(([name, value]) => {
      return JSON.stringify(closed[name as keyof typeof closed]) !== JSON.stringify(value);
    });
    expect(changed.map(([name]) => name)).to.have.members([
      'ACCESS',
      'EXTRA_INPUTS',
      'EXTRA_OUTPUTS',
      'MAX_BATCH_FILES',
      'MAX_FILE_BYTES',
      'MAX_PIXELS',
      'MAX_TOTAL_PIXELS',
      'RATE_LIMIT_PER_MINUTE',
      'UPLOAD_TIMEOUT_MS',
    ]);
  });

  it('reads bytes and pixels with a unit in any case, and rejects other units and fractions', () => {
    for (const [value, expected] of [
      ['50MB', 50e6],
      ['100k', 100e3],
      ['10MiB', 10 * 1024 ** 2],
      ['10mi', 10 * 1024 ** 2],
      ['1.5 M', 1.5e6],
      ['1.1GB', 1.1e9],
      ['20000000', 20e6],
      ['20000000B', 20e6],
    ] as const) {
      const config = loadConfig({ MAX_FILE_BYTES: value, MAX_TOTAL_PIXELS: value });
      expect([config.MAX_FILE_BYTES, config.MAX_TOTAL_PIXELS], value).to.deep.equal([expected, expected]);
    }
    expect(loadConfig({ MAX_PIXELS: '50MP' }).MAX_PIXELS).to.equal(50e6);
    for (const value of ['50 megabytes', '1.5', '0k', '-1', '3G', '1e6', '0x10', 'M', ' 1M'])
      expect(problemsOf({ MAX_FILE_BYTES: value })).to.deep.equal([
        `MAX_FILE_BYTES="${value}": expected a number from 1 to 2147483648, such as 50M or 10MiB`,
      ]);
  });

  for (const [value, meaning] of [
    ['true', true],
    ['false', false],
    ['2', 2],
    ['loopback, 10.0.0.0/8,2001:db8::/32', ['loopback', '10.0.0.0/8', '2001:db8::/32']],
  ] as const) {
    it(`parses TRUST_PROXY=${value} like Express`, () => {
      expect(loadConfig({ TRUST_PROXY: value }).TRUST_PROXY).to.deep.equal(meaning);
    });
  }

  for (const value of ['10.0.0.0/33', '10.0.0', 'yes', '10.0.0.1/8/8', ',', '::/129', '10.0.0.1/']) {
    it(`rejects TRUST_PROXY=${value}`, () => {
      expect(problemsOf({ TRUST_PROXY: value })).to.have.length(1);
    });
  }

  it('accepts REQUIRE_API_KEY=on only with API_KEYS_FILE, and a list of networks as TRUSTED_CLIENTS', () => {
    expect(problemsOf({ REQUIRE_API_KEY: 'on' })).to.deep.equal([
      'REQUIRE_API_KEY="on": expected API_KEYS_FILE to be set, too',
    ]);
    expect(problemsOf({ REQUIRE_API_KEY: 'on', API_KEYS_FILE: '/keys' })).to.deep.equal([]);
    expect(loadConfig({ TRUSTED_CLIENTS: '10.0.0.1, fd00::/8' }).TRUSTED_CLIENTS).to.deep.equal([
      '10.0.0.1',
      'fd00::/8',
    ]);
    expect(problemsOf({ TRUSTED_CLIENTS: 'shop' })).to.deep.equal([
      'TRUSTED_CLIENTS="shop": expected a list of addresses and subnets',
    ]);
  });

  it('hides an API key that is not valid', () => {
    expect(loadConfig({ IMAGEMILL_API_KEY: 'im_Ab-3_' }).IMAGEMILL_API_KEY).to.equal('im_Ab-3_');
    expect(problemsOf({ IMAGEMILL_API_KEY: 'my secret' })).to.deep.equal([
      'IMAGEMILL_API_KEY="…": expected an API key, without spaces',
    ]);
  });

  it('accepts a free IMAGINARY_PATH, and with REQUIRE_API_KEY=on only with IMAGINARY_KEY', () => {
    const expected = 'expected /, or a path such as /imaginary that no other page of the service has';
    for (const path of ['imaginary', '//', '/a/', '/a//b', '/api', '/api/v1', '/docs/x', '/livez', '/a b'])
      expect(problemsOf({ IMAGINARY_PATH: path }), path).to.deep.equal([
        `IMAGINARY_PATH="${path}": ${expected}`,
      ]);
    for (const path of ['/', '/imaginary', '/previews/v1', '/docs2'])
      expect(problemsOf({ IMAGINARY_PATH: path }), path).to.deep.equal([]);
    const both = { REQUIRE_API_KEY: 'on', API_KEYS_FILE: '/keys', IMAGINARY_PATH: '/imaginary' };
    expect(problemsOf(both)).to.have.length(1);
    expect(problemsOf({ ...both, IMAGINARY_KEY: 'key' })).to.deep.equal([]);
  });

  it('lists each setting that is set without effect, such as IMAGINARY_KEY without IMAGINARY_PATH', () => {
    const listOf = (environment: Record<string, string>) => listWithoutEffect(loadConfig(environment));
    expect(listOf({ IMAGINARY_KEY: 'secret' })).to.deep.equal([
      'IMAGINARY_KEY has no effect: IMAGINARY_PATH is not set',
    ]);
    expect(listOf({ IMAGINARY_KEY: 'secret', IMAGINARY_PATH: '/imaginary' })).to.deep.equal([]);
    expect(listOf({ IMAGINARY_PATH: '/imaginary' })).to.deep.equal([]);
  });

  it('rejects values that can only be a mistake', () => {
    expect(
      problemsOf({ SUPPORT_EMAIL: 'nobody', UPLOAD_TIMEOUT_MS: '1', CONVERT_TIMEOUT_MS: '1' }),
    ).to.deep.equal([
      'SUPPORT_EMAIL="nobody": expected an e-mail address',
      'CONVERT_TIMEOUT_MS="1": expected a whole number from 10 to 2147483647',
      'UPLOAD_TIMEOUT_MS="1": expected a whole number from 100 to 2147483647',
    ]);
  });

  it('warns of names that are nearly those of settings, and not of ordinary variables', () => {
    for (const [name, meant] of [
      ['RATE_LIMIT', 'RATE_LIMIT_PER_MINUTE'],
      ['MAX_FILE_SIZE', 'MAX_FILE_BYTES'],
      ['UPLOAD_TIMEOUT', 'UPLOAD_TIMEOUT_MS'],
      ['CORS_ORIGINS', 'CORS_ORIGIN'],
      ['API_KEY_FILE', 'API_KEYS_FILE'],
      ['CONCURENCY', 'CONCURRENCY'],
      ['LOGLEVEL', 'LOG_LEVEL'],
    ] as const)
      expect(listMisspelled({ [name]: '1' })).to.deep.equal([
        `${name} is not a setting, and has no effect. Did you mean ${meant}?`,
      ]);
    const ordinary =
      'PATH MANPATH CPATH HOST HOSTS HOSTNAME HOSTTYPE PORT PORTS PORT_HTTP POST ACCESS_KEY ' +
      'AWS_ACCESS_KEY_ID API_KEY TEMP TMPDIR LOGNAME LOG_FILE LANG LC_ALL REDIS_HOST ' +
      'REDIS_PORT_6379_TCP_ADDR IMAGEMILL_SERVICE_HOST IMAGEMILL_API_PORT_80_TCP WEB_CONCURRENCY ' +
      'NODE_OPTIONS MAGICK_HOME MAGICK_CONFIGURE_PATH XDG_RUNTIME_DIR max_file SSH_AUTH_SOCK ' +
      'DOCKER_HOST KUBERNETES_SERVICE_PORT INVOCATION_ID JOURNAL_STREAM SHLVL';
    const names = [...ordinary.split(' '), ...Object.keys(loadConfig({ ACCESS: 'private' }))];
    expect(listMisspelled(Object.fromEntries(names.map((name) => [name, '1'])))).to.deep.equal([]);
    expect(listMisspelled({ RATE_LIMIT: '' })).to.deep.equal([]);
  });

  it('takes every name of a format in EXTRA_INPUTS and EXTRA_OUTPUTS', () => {
    const { EXTRA_INPUTS, EXTRA_OUTPUTS } = loadConfig({
      EXTRA_INPUTS: 'HEIF, j2k,heic',
      EXTRA_OUTPUTS: 'tif',
    });
    expect([EXTRA_INPUTS, EXTRA_OUTPUTS]).to.deep.equal([['heic', 'jp2'], ['tiff']]);
  });

  it('lists the known formats for an unknown one of EXTRA_INPUTS and EXTRA_OUTPUTS', () => {
    expect(problemsOf({ EXTRA_INPUTS: 'heic,raw', EXTRA_OUTPUTS: 'avif,mp4' })).to.deep.equal([
      'EXTRA_INPUTS="heic,raw": expected all, or a list of heic, jxl, jp2, psd, cur, pdf',
      'EXTRA_OUTPUTS="avif,mp4": expected all, or a list of avif, jxl, tiff, ico',
    ]);
  });

  it('accepts a valid REDIS_URL, and hides an invalid one, since it may contain a password', () => {
    expect(problemsOf({ REDIS_URL: 'rediss://user:secret@cache.example:6380' })).to.deep.equal([]);
    for (const wrong of [
      'http://user:secret@cache.example',
      'user:secret@cache',
      'redis://:secret@cache.example:6379/cache',
      'redis://:secret@cache.example/1/2',
      'redis://:%zz@cache.example',
      'redis://',
      'unix:///run/secret.sock',
    ])
      expect(problemsOf({ REDIS_URL: wrong }), wrong).to.deep.equal([
        'REDIS_URL="…": expected redis://host:port or, for TLS, rediss://host:port, optionally with /NUMBER for a database other than 0',
      ]);
  });

  it('accepts no REDIS_URL that the Redis client rejects', () => {
    const part = fc.constantFrom('', ...'0 15 cache %zz %41 user : @ / ?a=b #c [::1]'.split(' '));
    const url = fc.tuple(
      fc.constantFrom('redis://', 'rediss://', 'redis:', 'unix:'),
      fc.array(part, { maxLength: 8 }),
    );
    fc.assert(
      fc.property(url, ([start, parts]) => {
        const REDIS_URL = start + parts.join('');
        if (problemsOf({ REDIS_URL }).length === 0) createRedisConnection(REDIS_URL, () => {});
      }),
      { numRuns: 300, seed: 20_261_121 },
    );
  });

  it('parses CORS_ORIGIN as *, a list or off', () => {
    expect(loadConfig({ CORS_ORIGIN: '*' }).CORS_ORIGIN).to.equal('*');
    expect(loadConfig({ CORS_ORIGIN: 'off' }).CORS_ORIGIN).to.equal(false);
    expect(loadConfig({ CORS_ORIGIN: 'https://a.example, http://b.example:8080' }).CORS_ORIGIN).to.deep.equal(
      ['https://a.example', 'http://b.example:8080'],
    );
    for (const wrong of ['a.example', 'https://a.example/path', 'null'])
      expect(problemsOf({ CORS_ORIGIN: wrong })).to.have.length(1);
  });
});

describe('loadLocalSettings', () => {
  it('lets local tools run one conversion more than processors, unless CONCURRENCY is set', () => {
    expect(loadLocalSettings({}).CONCURRENCY).to.equal(availableParallelism() + 1);
    expect(loadLocalSettings({ CONCURRENCY: '1' }).CONCURRENCY).to.equal(1);
  });
});
