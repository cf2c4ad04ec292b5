/** Requests to the server this page is from. */

const BASE = '/api/v1';

export interface Answer {
  readonly blob: Blob;
  header(name: string): string;
}

/** The server said no, in words that can be shown. */
export class Refusal extends Error {
  readonly status: number;
  /** Seconds to wait; 0 when the server did not say. */
  readonly retryAfter: number;
  constructor(status: number, message: string, retryAfter: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** No answer came at all. */
export class Unreachable extends Error {}

export const get = (path: string, signal: AbortSignal): Promise<Answer> => request('GET', path, signal);

/** @param onUpload is told the share, 0 to 1, that has been sent */
export const post = (
  path: string,
  body: FormData,
  signal: AbortSignal,
  onUpload: (share: number) => void,
): Promise<Answer> => request('POST', path, signal, body, onUpload);

/** Whether the server answers; it does not count this question. */
export async function isAlive(): Promise<boolean> {
  try {
    return (await fetch('/livez', { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}

/**
 * XMLHttpRequest, because fetch does not tell how much of a body has been sent. Aborting it hangs
 * up, which stops the server's work.
 *
 * Rejects with a Refusal, an Unreachable, or the signal's own reason.
 */
function request(
  method: string,
  path: string,
  signal: AbortSignal,
  body?: FormData,
  onUpload: (share: number) => void = () => {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const xhr = new XMLHttpRequest();
    const stop = () => xhr.abort();
    signal.addEventListener('abort', stop);
    xhr.open(method, BASE + path);
    xhr.responseType = 'blob';
    xhr.upload.onprogress = ({ loaded, total }) => onUpload(loaded / total);
    xhr.onabort = () => reject(signal.reason);
    xhr.onerror = () => reject(new Unreachable('The connection to the server broke off.'));
    xhr.onload = () => {
      const header = (name: string) => xhr.getResponseHeader(name) ?? '';
      if (xhr.status === 200) resolve({ blob: xhr.response, header });
      else refusal(xhr.status, xhr.response, Number(header('Retry-After')) || 0).then(reject);
    };
    xhr.onloadend = () => signal.removeEventListener('abort', stop);
    xhr.send(body ?? null);
  });
}

/** A proxy in front of the server may refuse in a shape of its own. */
async function refusal(status: number, body: Blob, retryAfter: number): Promise<Refusal> {
  try {
    const { error } = JSON.parse(await body.text()) as { error: { message: string } };
    return new Refusal(status, error.message, retryAfter);
  } catch {
    return new Refusal(status, `The server answered with status ${status}.`, retryAfter);
  }
}
