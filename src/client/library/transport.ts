/** @module Sends requests to the host that the application named, and reads limited texts. */

const REDIRECTS = [301, 302, 307, 308];
const MAX_REDIRECTS = 5;
/** Codes of the errors of Node.js if the peer closes a connection. */
const CLOSED_CODES = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/**
 * Sends a request like `fetch`, but follows a redirect only to the same host, and never from https
 * to http: the body and the API key are sent again.
 *
 * @param base address of the API, for messages
 * @throws {TypeError} that names the address, if the connection fails
 * @throws {Error} if the service redirects to another host, or if the redirect cannot be followed
 * @throws other errors of `fetch`, such as the reason of the signal
 */
export async function fetchFromHost(
  fetch: typeof globalThis.fetch,
  base: string,
  path: string,
  init: RequestInit,
): Promise<Response> {
  let url = base + path;
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetch(url, { ...init, redirect: 'manual' }).catch((error) => {
      throw error instanceof TypeError && !init.signal?.aborted ? connectionError(base, error) : error;
    });
    const location = response.headers.get('location');
    // Browsers hide the target of a redirect.
    if (response.type !== 'opaqueredirect' && !(location && REDIRECTS.includes(response.status)))
      return response;
    await response.body?.cancel();
    const target = location ? new URL(location, url) : undefined;
    const isStream = init.body instanceof ReadableStream; // can be sent only once
    if (!target || redirects >= MAX_REDIRECTS || isStream || !isSameHost(new URL(url), target))
      throw new Error(
        `${base} redirects to ${target?.origin ?? 'another address'}, to which nothing was sent: use the address of the service`,
      );
    url = target.href;
  }
}

const isSameHost = (from: URL, to: URL): boolean =>
  from.hostname === to.hostname &&
  (to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:'));

/** Creates an error that names the address. Without, it is "fetch failed" and a cause. */
function connectionError(base: string, { message, cause }: TypeError): TypeError {
  const isWithoutScheme = cause !== undefined && !/^https?:/i.test(base);
  const reason = isWithoutScheme ? new Error('the address must start with http:// or https://') : cause;
  return new TypeError(`cannot reach ${base}: ${(reason as Error | undefined)?.message || message}`, {
    cause: reason,
  });
}

/**
 * Returns whether the peer closed the connection before a response. It does so with connections
 * that it keeps open without a request, for example when nginx reloads its configuration, and a
 * request can be on its way then. Browsers repeat such a request themselves.
 */
export const isClosed = (error: unknown): boolean =>
  error instanceof TypeError &&
  CLOSED_CODES.includes((error.cause as { code?: string } | undefined)?.code ?? '');

/** Reads a body as text. Discards one larger than `maxBytes`, and returns undefined. */
export async function readText({ body }: Response, maxBytes: number): Promise<string | undefined> {
  const reader = body?.getReader();
  if (!reader) return '';
  const decoder = new TextDecoder();
  let text = '';
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}
