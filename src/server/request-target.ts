/** @module Parses request targets. Express would use `url.parse`, which is deprecated, and send a page of its own for some. */

/** Path below which all operations of the API are. */
export const API_PREFIX = '/api/v1';

/** Path for an invalid target. It is below the API, so that the rate limit counts the request. */
export const INVALID_PATH = `${API_PREFIX}/*`;

/** A target that is an absolute URL (RFC 9112, section 3.2.2): what precedes the path, and the rest. */
const ABSOLUTE_FORM = /^(https?:\/\/[^/?]*)(.*)$/i;

/**
 * Returns the path and query of a request target, with the spelling that the client sent. For `*`, returns a path that no
 * route has.
 *
 * @returns undefined if the target is invalid. RFC 9112, section 3.2 allows no fragment: proxies and this app might disagree
 *   about its path.
 */
export function parseTarget(target: string): string | undefined {
  if (target.includes('#')) return undefined;
  if (target.startsWith('/')) return target;
  if (target === '*') return NO_PATH;
  const [, origin = '', path = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (!URL.canParse(origin)) return undefined;
  return path.startsWith('/') ? path : `/${path}`;
}

/** Path for a target that has none. */
const NO_PATH = '/*';
