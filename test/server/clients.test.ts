import { expect } from 'chai';
import { parseAddress } from '../../src/server/clients.ts';

describe('parseAddress', () => {
  for (const [text, address] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:5555', '203.0.113.7'],
    ['203.0.113.7%eth0', '203.0.113.7'],
    ['2001:db8::9', '2001:db8::9'],
    ['[2001:db8::9]', '2001:db8::9'],
    ['[2001:db8::9]:80', '2001:db8::9'],
    ['fe80::9%eth0', 'fe80::9'],
    ['[fe80::9%eth0]:80', 'fe80::9'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['garbage', undefined],
    ['', undefined],
    ['256.1.1.1', undefined],
    ['203.0.113.7:', undefined],
    ['203.0.113.7:port', undefined],
    ['[203.0.113.7', undefined],
    ['a'.repeat(9000), undefined],
  ] as const) {
    it(`returns ${address} for ${JSON.stringify(text.slice(0, 40))}`, () => {
      expect(parseAddress(text)).to.equal(address);
    });
  }
});
