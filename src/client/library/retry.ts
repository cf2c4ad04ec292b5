/** @module When the library, the command line and the web page send a failed request again. */

/** Delay before a repetition if the response has no Retry-After, in s. */
export const DEFAULT_RETRY_S = 5;
/** First and maximum delay after failed connections, in ms. */
const [MIN_BACKOFF_MS, MAX_BACKOFF_MS] = [500, 30_000];

/** Why a request can succeed later: a rate limit, or a service busy or unreachable for a proxy. */
const OBSTACLES: Readonly<Record<number, 'limit' | 'busy' | 'unreachable'>> = {
  429: 'limit',
  502: 'unreachable',
  503: 'busy',
  504: 'unreachable',
};

/** Returns why a request with a response of this status can succeed later, if it can. */
export const obstacleOf = (status: number) => OBSTACLES[status];

/** Returns the delay before a repetition that the service states for this status, in s, if any. */
export function retryDelay(status: number, retryAfter: number | undefined): number | undefined {
  const obstacle = obstacleOf(status);
  return obstacle === 'limit' || obstacle === 'busy' ? (retryAfter ?? DEFAULT_RETRY_S) : undefined;
}

/** Returns the delay after a number of further failed connections, in ms. */
export const backoffAfter = (failures: number): number =>
  Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** failures);
