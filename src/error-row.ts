/** @module What a row of the table of errors consists of. */
import type { ErrorDetails as PublicError } from './client/library/types.ts';
import type { Config } from './config.ts';

/**
 * Which requests can cause an error: `endpoint` all requests, `handler` all except OPTIONS, `rate-limit` all requests if there is
 * a rate limit, `upload` requests with a form, `archive` those whose form can have archives, `file` those with a form, for one of
 * its files, `api-key` and `client-id` those that identify their client, if the settings permit it. The error of a `connection`
 * occurs before a request reaches an endpoint.
 */
export type ErrorScope =
  | 'connection'
  | 'endpoint'
  | 'handler'
  | 'rate-limit'
  | 'api-key'
  | 'client-id'
  | 'upload'
  | 'archive'
  | 'file';

/** Values of the examples in the API reference: those of an endpoint, and of this server. */
export interface ExampleValues {
  /** The label of a file in messages. */
  readonly file: string;
  /** The name of the form's file part. */
  readonly part: string;
  readonly maxFiles: number;
  /** The methods of the endpoint. */
  readonly allowed: string;
  /** The image formats that this server can read. */
  readonly supported: string;
  readonly requestId: string;
  readonly maxFields: number;
  readonly minChunkBytes: number;
  readonly minBytesPerSecond: number;
  readonly config: Config;
}

type Example<P> = (values: ExampleValues) => P;

/** What programs can read of an error, besides its message. Amounts have the unit of the message; times are in ms. */
export interface ErrorDetails extends Pick<PublicError, 'field' | 'limit' | 'actual'> {
  readonly setting?: keyof Config;
}

type Details<P extends unknown[]> = (...args: P) => ErrorDetails;

/** A row of the table of errors. */
export interface ErrorRow<P extends unknown[]> {
  readonly status: number;
  readonly scope: ErrorScope;
  readonly message: (...args: P) => string;
  /** Returns the arguments of the message in an example. */
  readonly example: Example<P>;
  readonly details: Details<P>;
  /** Value of `Retry-After`, in seconds. */
  readonly retryAfter?: (...args: P) => number;
}

const noDetails = (): ErrorDetails => ({});

/** Returns a function that defines an error of a scope, with an HTTP status. */
export const define =
  (scope: ErrorScope, status: number) =>
  <P extends unknown[] | []>(
    message: (...args: P) => string,
    example: Example<NoInfer<P>>,
    details: NoInfer<Details<P>> = noDetails,
  ) => ({ status, scope, message, example, details });

/**
 * Returns a function that defines an error of one file. The first argument of its message is the label of the file; `example`
 * returns the other arguments.
 */
export const file =
  (status: number) =>
  <P extends unknown[] | []>(
    message: (file: string, ...args: P) => string,
    example: Example<NoInfer<P>>,
    details: NoInfer<Details<P>> = noDetails,
  ): ErrorRow<[file: string, ...P]> => ({
    ...define('file', status)(message, (values): [file: string, ...P] => [values.file, ...example(values)]),
    details: (_file, ...args) => details(...args),
  });

/** Defines an error whose message has no arguments. */
export const fixed = (status: number, scope: ErrorScope, text: string): ErrorRow<[]> =>
  define(scope, status)(
    () => text,
    () => [],
  );

/** Defines an error of a service that is overloaded or unavailable. `wait` is the value of `Retry-After`, in seconds. */
export const unavailable = (scope: ErrorScope, text: string, wait: number): ErrorRow<[]> => ({
  ...fixed(503, scope, `${text} Try again shortly.`),
  retryAfter: () => wait,
});

/** Returns the details of an exceeded limit. */
export const exceeds = (actual: number, limit: number, setting?: keyof Config): ErrorDetails => ({
  limit,
  actual,
  ...(setting && { setting }),
});
