// @full
import { writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createApiKey } from '../../src/files/api-keys.ts';
import { StartupError } from '../../src/tables/errors.ts';
import {
  type ClientResponse,
  convert,
  converted,
  expectSuccess,
  fixture,
  jsonOf,
  sendForm,
} from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import type { Document } from '../helpers/openapi.ts';
import { startService, useOwnServices } from '../helpers/service.ts';
import { failure } from '../helpers/util.ts';

const keyFor = (name: string, limit?: string) => createApiKey(name, limit) as { key: string; line: string };
const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
const remaining = ({ headers }: ClientResponse) => headers.get('x-ratelimit-remaining');

const keysFile = (lines: readonly string[]) => writeTempFile('keys', lines.join('\n'));

describe('the name of a client from a trusted application', () => {
  const { start, current } = useOwnServices();
  const TRUSTED = { RATE_LIMIT_PER_MINUTE: '2', TRUSTED_CLIENTS: '127.0.0.0/8, ::1' };
  const health = (headers: Record<string, string> = {}) => sendForm(`${current().base}/health`, { headers });

  it('replaces the address in the rate limit, for each name', async () => {
    await start(TRUSTED);
    const names = ['user 1', 'user 2', 'user 3'];
    for (const left of ['1', '0']) {
      const answers = await Promise.all(names.map((name) => health({ 'x-client-id': name })));
      expect(new Set(answers.map((answer) => `${answer.status} ${remaining(answer)}`))).to.deep.equal(
        new Set([`200 ${left}`]),
      );
    }
    expect((await health({ 'x-client-id': 'user 3' })).status).to.equal(429);
    expect(remaining(await health()), 'the address itself').to.equal('1');
  });

  it('is ignored from other addresses, whatever it is', async () => {
    await start({ ...TRUSTED, TRUSTED_CLIENTS: '10.0.0.0/8' });
    expect(remaining(await health({ 'x-client-id': 'a' }))).to.equal('1');
    const long = await expectSuccess(health({ 'x-client-id': 'x'.repeat(129) }));
    expect(remaining(long)).to.equal('0');
  });

  it('counts behind a trusted proxy for the forwarded address', async () => {
    await start({ ...TRUSTED, TRUSTED_CLIENTS: '10.0.0.1', TRUST_PROXY: 'loopback' });
    const from = async (address: string) =>
      remaining(await health({ 'x-forwarded-for': address, 'x-client-id': 'a' }));
    expect(await from('10.0.0.1')).to.equal('1');
    expect(await from('10.0.0.1:99')).to.equal('0');
    expect(await from('10.0.0.2')).to.equal('1');
  });

  it('has up to 128 characters, also outside of ASCII, and counts for the address if it is invalid', async () => {
    await start(TRUSTED);
    const outcome = async (id: string) => (await health({ 'x-client-id': id })).outcome;
    expect(await outcome(Buffer.from('ü'.repeat(128)).toString('latin1'))).to.equal('200');
    const invalid = /^400 Invalid X-Client-Id: expected 1 to 128 characters/;
    expect(await outcome('x'.repeat(129))).to.match(invalid);
    expect(await outcome('a\tb')).to.match(invalid);
    expect(await outcome('')).to.match(/^429 /); // an empty name is none
  });
});

describe('an API key', () => {
  const { start, startShared, current } = useOwnServices();
  const shop = keyFor('shop');
  const forum = keyFor('forum', '3');
  const partner = keyFor('partner', '0');
  let API_KEYS_FILE: string;
  before(async () => {
    API_KEYS_FILE = await keysFile(['# comment', '', shop.line, `  ${forum.line}\r`, partner.line]);
  });
  const health = (headers: Record<string, string> = {}) => sendForm(`${current().base}/health`, { headers });

  it('names the client and its limit, wherever the request comes from', async () => {
    await start({ API_KEYS_FILE, RATE_LIMIT_PER_MINUTE: '5', TRUSTED_CLIENTS: 'loopback' });
    expect(remaining(await health())).to.equal('4');
    expect(remaining(await health(bearer(shop.key)))).to.equal('4');
    expect(remaining(await health({ authorization: `bearer ${shop.key}` }))).to.equal('3');
    const limited = await Promise.all(Array.from({ length: 4 }, () => health(bearer(forum.key))));
    expect(limited.map(({ status }) => status).sort()).to.deep.equal([200, 200, 200, 429]);
    const refused = limited.find(({ status }) => status === 429);
    expect(jsonOf(refused as ClientResponse).error).to.include({ limit: 3, setting: 'API_KEYS_FILE' });
    expect(refused?.message).to.match(/at most 3 per minute/);
    expect(remaining(await expectSuccess(health(bearer(partner.key))))).to.equal(null);
    const named = { ...bearer(forum.key), 'x-client-id': 'member' };
    expect(remaining(await health(named)), 'a client of the application with the key').to.equal('2');
  });

  it('is not needed by default, and another kind of credentials is ignored', async () => {
    await startShared({ API_KEYS_FILE });
    expect((await convert(current().base, await fixture('scene.jpg'))).status).to.equal(200);
    expect((await health({ authorization: 'Basic dTpw' })).status).to.equal(200);
  });

  it('that is wrong gets 401, counts for the address and is in no log', async () => {
    await start({ API_KEYS_FILE, RATE_LIMIT_PER_MINUTE: '1' });
    const wrong = await health(bearer('guessed-secret'));
    expect(wrong.outcome).to.equal('401 The API key is not valid.');
    expect(wrong.headers.get('www-authenticate')).to.equal('Bearer realm="imagemill"');
    expect((await health(bearer('guessed-again'))).status).to.equal(429);
    await health(bearer(shop.key));
    const log = JSON.stringify(current().logged);
    expect(log).to.include('"client":"shop"').and.not.include(shop.key).and.not.include('guessed');
  });

  it('is required with REQUIRE_API_KEY=on for everything but the reference, the page and the probes', async () => {
    await startShared({ API_KEYS_FILE, REQUIRE_API_KEY: 'on' });
    const { base } = current();
    const photo = await fixture('scene.jpg');
    for (const answer of [await convert(base, photo), await health(), await sendForm(`${base}/formats`)]) {
      expect(answer.headers.get('www-authenticate')).to.equal('Bearer realm="imagemill"');
      expect(answer.outcome).to.equal(
        '401 This server needs an API key: send it in the header "Authorization: Bearer KEY".',
      );
    }
    for (const path of ['/api/v1/openapi.json', '/livez', '/readyz', '/metrics'])
      expect((await sendForm(new URL(path, base).href)).status, path).to.equal(200);
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' };
    const { status, headers } = await sendForm(`${base}/convert`, {
      method: 'OPTIONS',
      headers: { ...preflight, 'access-control-request-headers': 'authorization' },
    });
    expect([status, headers.get('access-control-allow-headers')]).to.deep.equal([204, 'authorization']);
    await converted(base, photo, {}, 'a.jpg', bearer(shop.key));
  });

  it('is part of the reference if the service has keys', async () => {
    await startShared({ API_KEYS_FILE, REQUIRE_API_KEY: 'on' });
    const document = jsonOf(await sendForm(`${current().base}/openapi.json`));
    const { security, paths } = document as Document & { security: unknown };
    expect(security).to.deep.equal([{ ApiKey: [] }]);
    const open = Object.entries(paths).filter(([, { get, post }]) => !(get ?? post)?.responses?.['401']);
    expect(open.map(([path]) => path)).to.deep.equal(['/openapi.json']);
  });

  it('is read again, and a file with an invalid line changes nothing', async () => {
    const path = await keysFile([shop.line]);
    await start({ API_KEYS_FILE: path, REQUIRE_API_KEY: 'on' });
    const statuses = async () =>
      Promise.all([shop, forum].map(async ({ key }) => (await health(bearer(key))).status));
    expect(await statuses()).to.deep.equal([200, 401]);
    await writeFile(path, forum.line);
    await current().service.apiKeys.reload();
    expect(await statuses()).to.deep.equal([401, 200]);
    await writeFile(path, [forum.line, shop.key].join('\n'));
    const error = await failure(current().service.apiKeys.reload());
    expect(error.message).to.equal(
      `API_KEYS_FILE ${path}, line 2: expected NAME:SHA256 or NAME:SHA256:REQUESTS-PER-MINUTE`,
    );
    expect(await statuses()).to.deep.equal([401, 200]);
  });

  it('file that does not exist, or has an invalid line, keeps the service from starting', async () => {
    const twice = shop.line.replace('shop', 'b');
    const startWith = async (path: string) => (await failure(startService({ API_KEYS_FILE: path }))).message;
    expect(await startWith('/nothing')).to.match(/^API_KEYS_FILE \/nothing cannot be read: ENOENT/);
    for (const line of ['shop', `${keyFor('a').line}:many`])
      expect(await startWith(await keysFile([shop.line, line]))).to.match(/, line 2: expected NAME:SHA256/);
    const error = await failure(startService({ API_KEYS_FILE: await keysFile([shop.line, twice]) }));
    expect(error).to.be.instanceOf(StartupError);
    expect(error.message).to.match(/, line 2: the same key/);
  });
});
