/** @module Identifies the client of a request or connection. The rate limit, the workers and the queue use this key. */
import { isIP, type Socket } from 'node:net';
import type { Express, Request } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';
import type { Config } from '../config.ts';

/** Prefix length by which IPv6 clients are identified: the smallest network that providers assign to a customer. */
const IPV6_SUBNET = 64;

/** Express setting with the function that returns whether the proxy at an address, `hop` hops away, is trusted. */
const TRUST_FUNCTION = 'trust proxy fn';
type TrustFunction = (address: string, hop: number) => boolean;

/**
 * Makes the app accept forwarded addresses from trusted proxies, including addresses with a port.
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
 * Returns the key of a request's client: its IPv4 address, or the network of its IPv6 address. If a trusted proxy
 * forwards something that is not an address, the address of the connection is used.
 */
export function clientKey(req: Request): string {
  return addressKey(parseAddress(req.ip) ?? req.socket.remoteAddress);
}

/**
 * Returns the key of a connection's client, or undefined for a trusted proxy, whose connections belong to many clients.
 */
export function connectionKey(app: Express, { remoteAddress = '' }: Socket): string | undefined {
  const trusts: TrustFunction = app.get(TRUST_FUNCTION);
  return trusts(remoteAddress, 0) ? undefined : addressKey(remoteAddress);
}

function addressKey(address: string | undefined): string {
  return ipKeyGenerator(parseAddress(address) ?? 'unknown', IPV6_SUBNET);
}

/** Returns an IP address without brackets, port and zone, or undefined if the text is not an address. */
export function parseAddress(text = ''): string | undefined {
  const [, bracketed, v4] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? v4 ?? text).replace(/%.*$/s, '');
  return isIP(address) === 0 ? undefined : address;
}
