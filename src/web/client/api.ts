/** @module Requests to the page's own server, with the client for applications. */
import { effect, signal } from '@preact/signals';
import { type Client, createClient } from '../../client/library/index.ts';
import { loadStored, store } from '../storage.ts';

/** Address of the server, with the path that a proxy gives it. It ends with a slash. */
export const SERVICE_URL = new URL('./', location.href).href;

const STORED_KEY = 'imagemill-api-key';

/** The API key of the requests, which the tab keeps. Empty if the server needs none. */
export const apiKey = signal(loadStored(STORED_KEY, 'sessionStorage'));
effect(() => store(STORED_KEY, apiKey.value, 'sessionStorage'));

/** `Accept` for the smallest result: browsers show AVIF and WebP, which wildcards do not permit. */
export const SHOWN_TYPES = 'image/avif,image/webp,*/*';

/** The connection failed without a response. */
export class ConnectionError extends Error {}

/**
 * Returns a client of the server. The queue repeats its requests.
 *
 * @param onUpload called with the fraction of an image that has been sent, 0 to 1
 * @throws {ConnectionError} if the connection fails
 */
export const connect = (onUpload: (share: number) => void = () => {}): Client =>
  createClient(SERVICE_URL, { key: apiKey.value, retries: 0, fetch: createFetch(onUpload) });

/** Returns whether the page is served. It counts toward no limit; proxies often hide `/livez`. */
export async function isAlive(): Promise<boolean> {
  try {
    return (await fetch(SERVICE_URL, { method: 'HEAD', cache: 'no-store', headers: { accept: 'text/html' } }))
      .ok;
  } catch {
    return false;
  }
}

/**
 * Creates a `fetch` from XMLHttpRequest, since that of browsers does not report the progress of an
 * upload. An abort closes the connection, which cancels the conversion on the server.
 */
function createFetch(onUpload: (share: number) => void): typeof fetch {
  return (url, { method = 'GET', headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const xhr = new XMLHttpRequest();
      const abort = () => xhr.abort();
      signal?.addEventListener('abort', abort);
      xhr.open(method, String(url));
      for (const [name, value] of new Headers(headers)) xhr.setRequestHeader(name, value);
      xhr.setRequestHeader('Accept', SHOWN_TYPES);
      xhr.responseType = 'blob';
      xhr.upload.onprogress = ({ loaded, total }) => onUpload(loaded / total);
      xhr.onabort = () => reject(signal?.reason);
      xhr.onerror = () => reject(new ConnectionError('The connection to the server was lost.'));
      xhr.onload = () => resolve(toResponse(xhr));
      xhr.onloadend = () => signal?.removeEventListener('abort', abort);
      xhr.send((body as Blob | null) ?? null);
    });
}

function toResponse(xhr: XMLHttpRequest): Response {
  const lines = xhr.getAllResponseHeaders().matchAll(/^([^:\s]+): (.*)$/gm);
  const headers = [...lines].map(([, name = '', value = '']): [string, string] => [name, value]);
  // A response without content, such as 204, must have no body.
  return new Response(xhr.response.size > 0 ? xhr.response : null, { status: xhr.status, headers });
}
