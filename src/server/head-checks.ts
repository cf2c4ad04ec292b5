/** @module Rejects or answers requests by their request line and headers alone, on every path. */
import type { Request, RequestHandler } from 'express';
import { type ServiceError, serviceError } from '../errors.ts';
import { isProbeOnly } from './connections.ts';

type Check = (req: Request) => ServiceError | undefined;

/** A valid `Host` value by RFC 9112, section 3.2: characters of RFC 3986, or nothing. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

const CHECKS: readonly Check[] = [
  function host({ httpVersion, headersDistinct: { host: hosts = [] } }) {
    const valid =
      hosts.length === 1 ? HOST.test(hosts[0] as string) : hosts.length === 0 && httpVersion === '1.0';
    return valid ? undefined : serviceError('HOST_INVALID');
  },
  function transferCoding({ headers: { 'transfer-encoding': coding } }) {
    return coding === undefined || coding.toLowerCase() === 'chunked'
      ? undefined
      : serviceError('TRANSFER_CODING');
  },
  // RFC 9112, section 3.2 allows no fragment. Proxies and this app might disagree about a path that has one.
  function target({ url }) {
    return url.includes('#') ? serviceError('MALFORMED_REQUEST') : undefined;
  },
];

/** Rejects requests that violate HTTP, or whose body has an unsupported transfer coding. */
export const checkHead: RequestHandler = (req, _res, next) => {
  for (const check of CHECKS) {
    const error = check(req);
    if (error) return next(error);
  }
  next();
};

/** Rejects requests on connections that have a slot for probes only. */
export const rejectReserved: RequestHandler = (req, res, next) => {
  if (!isProbeOnly(req.socket)) return next();
  res.setHeader('Connection', 'close');
  next(serviceError('TOO_MANY_CONNECTIONS'));
};

/** Answers `OPTIONS *`, which asks about the server and not about a path (RFC 9110, section 9.3.7). */
export const serverOptions: RequestHandler = (req, res, next) => {
  if (req.method !== 'OPTIONS' || req.url !== '*') return next();
  res.setHeader('Allow', 'GET, HEAD, POST, OPTIONS');
  res.status(204).end();
};
