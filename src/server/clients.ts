/**
 * @module Identifies the client of a request: by its API key, by the name that a trusted
 * application gives it, or by its address. The rate limit, the queue, the disk space and the limit
 * on connections distinguish clients by the same key.
 */
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import express, { type RequestHandler } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';
import type { ApiKeys } from '../files/api-keys.ts';
import type { Config } from '../tables/config.ts';
import { type ServiceError, serviceError } from '../tables/errors.ts';
import { setLogFields } from './middleware.ts';

/** The client of a request. */
export interface Client {
  /** What distinguishes it from other clients. */
  readonly key: string;
  /** IP address, or that which a trusted proxy states. */
  readonly address: string;
  /** Requests per minute; 0 for no limit. */
  readonly perMinute: number;
  /** The setting that `perMinute` comes from. */
  readonly limitedBy: 'RATE_LIMIT_PER_MINUTE' | 'API_KEYS_FILE';
  /** Name of its API key, if it has one. */
  readonly name?: string;
  /** Why the request must be rejected, after it was counted for the address. */
  readonly error?: ServiceError | undefined;
}

const clients = new WeakMap<IncomingMessage, Client>();

/** Returns the client of a request that {@link Clients.identify} has seen. */
export const clientOf = (req: IncomingMessage): Client => clients.get(req) as Client;

/** Maximum length of `X-Client-Id`, in characters, and those that it can have. */
const CLIENT_ID_PATTERN = /^\P{Cc}{1,128}$/u;

/** Finds the client of each request and connection. It rejects none: see {@link checkClient}. */
export class Clients {
  readonly #config: Config;
  readonly #keys: ApiKeys;
  readonly #isTrusted: TrustFunction;
  /** Returns whether an address is that of a trusted proxy. Express uses it, too. */
  readonly isProxy: TrustFunction;

  constructor(config: Config, keys: ApiKeys) {
    this.#config = config;
    this.#keys = keys;
    this.#isTrusted = trustFunction([...config.TRUSTED_CLIENTS]);
    this.isProxy = trustFunction(config.TRUST_PROXY);
  }

  /** Identifies the client of a request, for {@link clientOf}. */
  identify(req: IncomingMessage): Client {
    const client = this.#find(req);
    clients.set(req, client);
    return client;
  }

  /** Returns the key of a connection's client; undefined for a trusted proxy or application. */
  connectionKey({ remoteAddress = '' }: Socket): string | undefined {
    const isShared = this.isProxy(remoteAddress, 0) || this.#isTrusted(remoteAddress, 0);
    return isShared ? undefined : addressKey(remoteAddress);
  }

  #find(req: IncomingMessage): Client {
    const { API_KEYS_FILE, RATE_LIMIT_PER_MINUTE } = this.#config;
    const { authorization = '', 'x-client-id': givenId = '' } = req.headers;
    const address = clientAddress(req, this.isProxy);
    const unknown: Client = {
      key: addressKey(address),
      address,
      perMinute: RATE_LIMIT_PER_MINUTE,
      limitedBy: 'RATE_LIMIT_PER_MINUTE',
    };
    const [, secret] = (API_KEYS_FILE && /^Bearer +(\S+)$/i.exec(authorization)) || [];
    const apiKey = secret === undefined ? undefined : this.#keys.find(secret);
    if (secret !== undefined && !apiKey) return { ...unknown, error: serviceError('API_KEY_INVALID') };
    // Node.js decodes headers as Latin-1.
    const id = this.#isTrusted(address, 0) && Buffer.from(String(givenId), 'latin1').toString();
    if (id && !CLIENT_ID_PATTERN.test(id)) return { ...unknown, error: serviceError('CLIENT_ID_INVALID') };
    if (!apiKey) return id ? { ...unknown, key: `id:${id}` } : unknown;
    const { name, perMinute } = apiKey;
    const limit = perMinute === undefined ? {} : ({ perMinute, limitedBy: 'API_KEYS_FILE' } as const);
    return { ...unknown, ...limit, key: id ? `key:${name}:${id}` : `key:${name}`, name };
  }
}

/** Changes what {@link Clients.identify} has found. */
export function changeClient(req: IncomingMessage, changes: Partial<Client>): void {
  clients.set(req, { ...clientOf(req), ...changes });
}

/** Adds the address of the client to the log line of the request. */
export const logAddress: RequestHandler = (req, res, next) => {
  setLogFields(res, { address: clientOf(req).address });
  next();
};

/** Value of `WWW-Authenticate` (RFC 6750). */
const BEARER = 'Bearer realm="imagemill"';

/** Creates middleware that rejects a wrong API key or client ID, and a missing key if required. */
export function checkClient({ REQUIRE_API_KEY }: Config): RequestHandler {
  return (req, res, next) => {
    const { name, error = name || REQUIRE_API_KEY === 'off' ? undefined : serviceError('API_KEY_MISSING') } =
      clientOf(req);
    if (name) setLogFields(res, { client: name });
    if (error?.status === 401) res.setHeader('WWW-Authenticate', BEARER);
    next(error);
  };
}

/** Prefix length that identifies IPv6 clients: the smallest network that a customer gets. */
const IPV6_SUBNET = 64;

/** Returns whether an address, `hop` hops away, is trusted. */
type TrustFunction = (address: string, hop: number) => boolean;

/** Returns Express's test for a `trust proxy` value. It also takes a port, and any other text. */
function trustFunction(setting: Config['TRUST_PROXY']): TrustFunction {
  const trusts: TrustFunction = express().set('trust proxy', setting).get('trust proxy fn');
  return (address, hop) => trusts(parseAddress(address) ?? '', hop);
}

/**
 * Returns the address of a request's client: the first one that is not a trusted proxy's, from that
 * of the connection to the start of `X-Forwarded-For`. If a trusted proxy forwards something else,
 * returns that of the connection.
 */
function clientAddress({ socket, headers }: IncomingMessage, isProxy: TrustFunction): string {
  const { remoteAddress = '' } = socket;
  const forwarded = String(headers['x-forwarded-for'] ?? '');
  let address = remoteAddress;
  for (let [hop, end] = [0, forwarded.length]; end > 0 && isProxy(address, hop); hop += 1) {
    const comma = forwarded.lastIndexOf(',', end - 1);
    address = forwarded.slice(comma + 1, end).trim();
    end = comma;
  }
  return parseAddress(address) ?? remoteAddress;
}

/** Returns the key of an address: the IPv4 address, or the network of the IPv6 address. */
function addressKey(address: string): string {
  return ipKeyGenerator(parseAddress(address) ?? 'unknown', IPV6_SUBNET);
}

/** Returns an IP address without brackets, port and zone; undefined for any other text. */
function parseAddress(text = ''): string | undefined {
  const [, bracketed, v4] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? v4 ?? text).replace(/%.*$/s, '');
  return isIP(address) === 0 ? undefined : address;
}
