/** @module The error of a response, for applications, the command line and the web page. */
import { retryDelay } from './retry.ts';
import type { ErrorDetails, Reason } from './types.ts';

const PAYLOAD_TOO_LARGE = 413;
/** Reason of a 413 without details: the service always states them, so a proxy refused it. */
const PROXY_REASON = 'proxy_413';

/** The service, or a proxy before it, responded with an error. The message can be displayed. */
export class ImagemillError extends Error {
  override readonly name = 'ImagemillError';
  /** The HTTP status. */
  readonly status: number;
  /** What the service states. Undefined if the response is that of a proxy. */
  readonly details: ErrorDetails | undefined;
  /** Time after which the request can be sent again, in s. Undefined if not stated. */
  readonly retryAfter: number | undefined;

  /** @param sentBytes size of the body of the request; undefined if it is unknown */
  constructor(status: number, details?: ErrorDetails, retryAfter?: number, sentBytes?: number) {
    super(details?.message ?? describeForeignError(status, sentBytes));
    this.status = status;
    this.details = details;
    this.retryAfter = retryAfter;
  }

  /**
   * Names the error, for programs. If the response is that of a proxy, `proxy_413`, or undefined
   * for other statuses.
   */
  get reason(): Reason | typeof PROXY_REASON | undefined {
    return this.details?.reason ?? (this.status === PAYLOAD_TOO_LARGE ? PROXY_REASON : undefined);
  }

  /** Delay before a repetition of the request, in s. Undefined if the status is not 429 or 503. */
  get retryDelayS(): number | undefined {
    return retryDelay(this.status, this.retryAfter);
  }
}

function describeForeignError(status: number, sentBytes: number | undefined): string {
  if (status !== PAYLOAD_TOO_LARGE)
    return `The server responded with status ${status}, and without a message of imagemill.`;
  const size = sentBytes === undefined ? 'the request' : formatBytes(sentBytes);
  return `A proxy in front of the server refused ${size}. Send less, or raise its limit (nginx: client_max_body_size).`;
}

const formatBytes = (bytes: number): string =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.round(bytes / 1e5) / 10} MB`;

/**
 * Returns the error that a response states. Those of a proxy can have any body.
 *
 * @param retryAfter the header `Retry-After`
 * @param sentBytes size of the body of the request; undefined if it is unknown
 */
export function toError(
  status: number,
  body: string,
  retryAfter: string | null,
  sentBytes?: number,
): ImagemillError {
  let details: ErrorDetails | undefined;
  try {
    const { error } = JSON.parse(body) as { readonly error?: ErrorDetails };
    if (typeof error?.message === 'string') details = error;
  } catch {
    // The body is not JSON.
  }
  const delay = /^\d+(?:\.\d+)?$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  return new ImagemillError(status, details, delay, sentBytes);
}
