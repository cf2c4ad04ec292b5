/** @module HTTP requests to the page's own server. */
import { effect, signal } from '@preact/signals';
import { type ImagemillError, toError } from '../../client/library/error.ts';
import type { ErrorDetails } from '../../client/library/types.ts';
import { formatExcess } from '../format.ts';

const API_PREFIX = '/api/v1';

/** The storage of the tab; undefined if the browser blocks it. */
const storage = ((): Storage | undefined => {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
})();
const STORED_KEY = 'imagemill-api-key';

/** The API key of the requests, which the tab keeps. Empty if the server needs none. */
export const apiKey = signal(storage?.getItem(STORED_KEY) ?? '');

effect(() => storage?.setItem(STORED_KEY, apiKey.value));

/** A response with status 200. */
export interface ApiResponse {
  readonly blob: Blob;
  /** Returns the value of a header; empty if absent. */
  header(name: string): string;
}

/** The connection failed without a response. */
export class ConnectionError extends Error {}

/** Sends a GET request. Rejects as {@link request} does. */
export const get = (path: string, signal: AbortSignal): Promise<ApiResponse> => request('GET', path, signal);

/**
 * Sends a form. Rejects as {@link request} does.
 *
 * @param onUpload called with the fraction of the body that has been sent, 0 to 1
 */
export const post = (
  path: string,
  body: FormData,
  signal: AbortSignal,
  onUpload: (share: number) => void,
): Promise<ApiResponse> => request('POST', path, signal, body, onUpload);

/**
 * Returns whether the server responds. Requests the page, which does not count toward the rate limit. Proxies often hide
 * `/livez`.
 */
export async function isAlive(): Promise<boolean> {
  try {
    return (await fetch('/', { method: 'HEAD', cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}

/**
 * Sends a request with XMLHttpRequest, since fetch does not report the progress of an upload. An abort closes the
 * connection, which cancels the conversion on the server.
 *
 * @throws {ImagemillError} if the status is not 200
 * @throws {ConnectionError} if the connection fails
 * @throws the signal's reason if it aborts
 */
function request(
  method: string,
  path: string,
  signal: AbortSignal,
  body?: FormData,
  onUpload: (share: number) => void = () => {},
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const xhr = new XMLHttpRequest();
    const abort = () => xhr.abort();
    signal.addEventListener('abort', abort);
    xhr.open(method, API_PREFIX + path);
    if (apiKey.value) xhr.setRequestHeader('Authorization', `Bearer ${apiKey.value}`);
    xhr.responseType = 'blob';
    xhr.upload.onprogress = ({ loaded, total }) => onUpload(loaded / total);
    xhr.onabort = () => reject(signal.reason);
    xhr.onerror = () => reject(new ConnectionError('The connection to the server was lost.'));
    xhr.onload = () => {
      const header = (name: string) => xhr.getResponseHeader(name) ?? '';
      if (xhr.status === 200) resolve({ blob: xhr.response, header });
      else
        xhr.response
          .text()
          .then((body: string) => reject(toPageError(xhr.status, body, header('Retry-After'))));
    };
    xhr.onloadend = () => signal.removeEventListener('abort', abort);
    xhr.send(body ?? null);
  });
}

/** Returns the error of a response, with a message for the page. */
function toPageError(status: number, body: string, retryAfter: string): ImagemillError {
  const error = toError(status, body, retryAfter);
  error.message = error.details ? formatError(error.details) : `The server responded with status ${status}.`;
  return error;
}

/** Returns the message of an error without the name of a setting, which helps operators only. */
function formatError({ message, reason, actual, limit, setting }: ErrorDetails): string {
  if (reason === 'too_many_pixels')
    return formatExcess(Number(actual), Number(limit), 'pixels', 'megapixels');
  return message.replace(` (${setting})`, '');
}
