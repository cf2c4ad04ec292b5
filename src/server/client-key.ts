import { isIP, type Socket } from 'node:net';
import type { Express, Request } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';
import type { Config } from '../config.ts';

/** Which client a request or a connection belongs to. The rate limit, the workers and the queue all use this key. */

/** Bits of an IPv6 network that count as one client: the smallest network that providers give to a customer. */
const IPV6_SUBNET = 64;

/** Express's name for the function that tells whether the proxy at an address, so many hops away, is trusted. */
const TRUST_FUNCTION = 'trust proxy fn';
type TrustFunction = (address: string, hop: number) => boolean;

/**
 * Makes the app believe the forwarded addresses of trusted proxies, including those that append a port to them.
 *
 * @param setting the value of `TRUST_PROXY`
 */
export function trustProxies(app: Express, setting: Config['TRUST_PROXY']): void {
  app.set('trust proxy', setting);
  const trusts: TrustFunction = app.get(TRUST_FUNCTION);
  app.set('trust proxy', ((address, hop) =>
    trusts(parseAddress(address) ?? '', hop)) satisfies TrustFunction);
}

/**
 * Returns the client that a request counts for: its address, or the network of an IPv6 address. When a trusted proxy
 * forwards something that is not an address, the address of that connection counts.
 */
export function clientKey(req: Request): string {
  return addressKey(parseAddress(req.ip) ?? req.socket.remoteAddress);
}

/**
 * Returns the client that a connection counts for, or undefined when it comes from a trusted proxy, whose connections
 * belong to many clients.
 */
export function connectionKey(app: Express, { remoteAddress = '' }: Socket): string | undefined {
  const trusts: TrustFunction = app.get(TRUST_FUNCTION);
  return trusts(remoteAddress, 0) ? undefined : addressKey(remoteAddress);
}

function addressKey(address: string | undefined): string {
  return ipKeyGenerator(parseAddress(address) ?? 'unknown', IPV6_SUBNET);
}

/** Returns an IP address without brackets, port and zone, or undefined when the text is not an address. */
export function parseAddress(text = ''): string | undefined {
  const [, bracketed, v4] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? v4 ?? text).replace(/%.*$/s, '');
  return isIP(address) === 0 ? undefined : address;
}
