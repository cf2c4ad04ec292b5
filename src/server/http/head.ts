/** @module Checks the target and headers of each request, and limits headers that parse slowly. */
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler } from 'express';
import { serviceError } from '../../tables/errors.ts';

/** Path below which all operations of the API are. */
export const API_PREFIX = '/api/v1';

/** Path for an invalid target. It is below the API, so that the rate limit counts the request. */
export const INVALID_PATH = `${API_PREFIX}/*`;

/** Path for a target that has none. */
const NO_PATH = '/*';

/** A target that is an absolute URL (RFC 9112, 3.2.2): what precedes the path, and the rest. */
const ABSOLUTE_FORM = /^(https?:\/\/[^/?]*)(.*)$/i;

/**
 * Returns the path and query of a request target, with the spelling that the client sent. For `*`,
 * returns a path that no route has.
 *
 * @returns undefined if the target is invalid. RFC 9112, section 3.2 allows no fragment: proxies
 *   and this app might disagree about its path.
 */
export function parseTarget(target: string): string | undefined {
  if (target.includes('#')) return undefined;
  if (target.startsWith('/')) return target;
  if (target === '*') return NO_PATH;
  const [, origin = '', path = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (!URL.canParse(origin)) return undefined;
  return path.startsWith('/') ? path : `/${path}`;
}

/** Maximum bytes of a request's line and headers, for imaginary's interface and for others. */
export const MAX_HEAD_BYTES = {
  /** A pipeline of 16 KiB, encoded for a URL, and 16 KiB more. */
  imaginary: 64 * 1024,
  other: 16 * 1024,
};

/** Returns the length of a request's line and headers, in bytes. */
function headBytes({ method, originalUrl, httpVersion, rawHeaders }: Request): number {
  const line = `${method}  HTTP/${httpVersion}\r\n\r\n`.length + originalUrl.length;
  return rawHeaders.reduce((sum, text) => sum + text.length + 2, line); // 2: the colon and a space, or the line break
}

/** Headers that are slow to parse, ignored above this many bytes. Browsers send at most 200. */
const [SLOW_HEADERS, MAX_SLOW_BYTES] = [['accept', 'accept-encoding'], 2048] as const;

/**
 * Removes headers that are slow to parse and longer than any client needs. Of `X-Forwarded-For`,
 * keeps the end: the nearest proxies have added it.
 */
export function limitHeaders({ headers }: IncomingMessage): void {
  for (const name of SLOW_HEADERS) if ((headers[name]?.length ?? 0) > MAX_SLOW_BYTES) delete headers[name];
  const forwarded = String(headers['x-forwarded-for'] ?? '');
  if (forwarded.length <= MAX_SLOW_BYTES) return;
  const end = forwarded.slice(-MAX_SLOW_BYTES);
  headers['x-forwarded-for'] = end.slice(end.indexOf(',') + 1);
}

/** A valid `Host` value by RFC 9112, section 3.2: characters of RFC 3986, or nothing. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** Creates middleware that rejects an invalid or too long head, or an unsupported coding. */
export function checkHead(isImaginary: (path: string) => boolean): RequestHandler {
  return (req, _res, next) => {
    if (headBytes(req) > MAX_HEAD_BYTES[isImaginary(req.path) ? 'imaginary' : 'other'])
      throw serviceError('HEADERS_TOO_LARGE');
    const { host: hosts = [] } = req.headersDistinct;
    const { 'transfer-encoding': coding = 'chunked' } = req.headers;
    const hasValidHost =
      hosts.length === 1 ? HOST.test(hosts[0] as string) : hosts.length === 0 && req.httpVersion === '1.0';
    if (!hasValidHost) throw serviceError('HOST_INVALID');
    if (coding.toLowerCase() !== 'chunked') throw serviceError('TRANSFER_CODING');
    if (parseTarget(req.originalUrl) === undefined) throw serviceError('MALFORMED_REQUEST');
    next();
  };
}
