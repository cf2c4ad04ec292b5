// @unit
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import type { ApiKeys } from '../../src/files/api-keys.ts';
import { Clients } from '../../src/server/clients.ts';
import { testConfig } from '../helpers/service.ts';

describe('the key of a client behind a trusted proxy', () => {
  const clients = new Clients(testConfig({ TRUST_PROXY: 'loopback' }), {} as ApiKeys);
  const proxy = { remoteAddress: '127.0.0.1' };

  for (const [text, address] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:5555', '203.0.113.7'],
    ['203.0.113.7%eth0', '203.0.113.7'],
    ['2001:db8::9', '2001:db8::/64'],
    ['[2001:db8::9]', '2001:db8::/64'],
    ['[2001:db8::9]:80', '2001:db8::/64'],
    ['fe80::9%eth0', 'fe80::/64'],
    ['[fe80::9%eth0]:80', 'fe80::/64'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['garbage', proxy.remoteAddress],
    ['', proxy.remoteAddress],
    ['256.1.1.1', proxy.remoteAddress],
    ['203.0.113.7:', proxy.remoteAddress],
    ['203.0.113.7:port', proxy.remoteAddress],
    ['[203.0.113.7', proxy.remoteAddress],
    ['a'.repeat(9000), proxy.remoteAddress],
  ] as const) {
    it(`is ${address} if it forwards ${JSON.stringify(text.slice(0, 40))}`, () => {
      const req = { socket: proxy, headers: { 'x-forwarded-for': text } } as unknown as IncomingMessage;
      expect(clients.identify(req).key).to.equal(address);
    });
  }
});
