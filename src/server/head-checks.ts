import type { Request, RequestHandler } from 'express';
import { type ServiceError, serviceError } from '../errors.ts';
import { isReserved } from './connections.ts';

/** Refusals by a request's head alone, which hold for every path. */

type Check = (req: Request) => ServiceError | undefined;

/** What RFC 9112, section 3.2 takes for a host: characters of RFC 3986, or nothing. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

const CHECKS: readonly Check[] = [
  function host({ httpVersion, headersDistinct: { host: hosts = [] } }) {
    const fits =
      hosts.length === 1 ? HOST.test(hosts[0] as string) : hosts.length === 0 && httpVersion === '1.0';
    return fits ? undefined : serviceError('HOST_INVALID');
  },
  function transferCoding({ headers: { 'transfer-encoding': coding } }) {
    return coding === undefined || coding.toLowerCase() === 'chunked'
      ? undefined
      : serviceError('TRANSFER_CODING');
  },
  // RFC 9112, section 3.2 has no fragments; with one, proxies and this app may disagree about the path.
  function target({ url }) {
    return url.includes('#') ? serviceError('NOT_HTTP') : undefined;
  },
];

/** Refuses requests that HTTP does not allow, or whose body has an unsupported coding. */
export const checkHead: RequestHandler = (req, _res, next) => {
  for (const check of CHECKS) {
    const error = check(req);
    if (error) return next(error);
  }
  next();
};

/** Refuses requests on connections that have a place for probes only. */
export const refuseReserved: RequestHandler = (req, res, next) => {
  if (!isReserved(req.socket)) return next();
  res.setHeader('Connection', 'close');
  next(serviceError('TOO_MANY_CONNECTIONS'));
};
