/** @module The error of a response. The command line and the web page read it in the same way as applications. */
import type { ErrorDetails, Reason } from './types.ts';

/** Statuses of a service that cannot accept a request at the moment. */
const BUSY_STATUSES = [429, 503];
/** Delay before a repetition if the response has no Retry-After, in s. */
const DEFAULT_RETRY_S = 5;

/** The service, or a proxy before it, responded with an error. The message can be displayed. */
export class ImagemillError extends Error {
  override readonly name = 'ImagemillError';
  /** The HTTP status. */
  readonly status: number;
  /** What the service states. Undefined if the response is that of a proxy. */
  readonly details: ErrorDetails | undefined;
  /** Time after which the request can be sent again, in s. Undefined if the response does not state it. */
  readonly retryAfter: number | undefined;

  constructor(status: number, details?: ErrorDetails, retryAfter?: number) {
    super(
      details?.message ?? `The server responded with status ${status}, and without a message of imagemill.`,
    );
    this.status = status;
    this.details = details;
    this.retryAfter = retryAfter;
  }

  /** Names the error, for programs. Undefined if the response is that of a proxy. */
  get reason(): Reason | undefined {
    return this.details?.reason;
  }

  /** Delay before a repetition of the request, in s. Undefined if the status is neither 429 nor 503. */
  get retryDelayS(): number | undefined {
    return BUSY_STATUSES.includes(this.status) ? (this.retryAfter ?? DEFAULT_RETRY_S) : undefined;
  }
}

/**
 * Returns the error that a response states. Those of a proxy can have any body.
 *
 * @param retryAfter the header `Retry-After`
 */
export function toError(status: number, body: string, retryAfter: string | null): ImagemillError {
  let details: ErrorDetails | undefined;
  try {
    const { error } = JSON.parse(body) as { readonly error?: ErrorDetails };
    if (typeof error?.message === 'string') details = error;
  } catch {
    // The body is not JSON.
  }
  return new ImagemillError(
    status,
    details,
    /^\d+(?:\.\d+)?$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined,
  );
}
