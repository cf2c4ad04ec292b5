import { errorExamples } from './error-examples.ts';
import type { ApiContext, Json } from './facts.ts';
import { contextHeaders, type Header, type HeaderName, headers } from './headers.ts';
import type { Operation } from './operations.ts';

/** What an operation may answer, by status. */

const WHEN: Readonly<Record<number, string>> = {
  400: 'The request is malformed, a field is missing or invalid, there are too many files, an image or archive is damaged or of a kind that cannot be read, or the output cannot hold it.',
  405: 'The path has another method than the one that was used.',
  408: 'The request took longer to send than it may, or came too slowly.',
  413: 'A file is too large; or a picture has more pixels, frames or pages, or takes more time, than the limits allow. The message names the limit and its setting.',
  415: 'A file is of no supported type, or the body has a `Content-Encoding`.',
  429: 'There were too many requests from this address.',
  431: 'The headers of the request are too large.',
  500: 'Something unexpected. The message says whom to write to and which request to quote.',
  501: 'The body has a transfer coding that is not supported.',
  503: 'The service cannot do it now: it is busy, out of room, without its tools, or shutting down.',
};

/** Where the head of the request may be what is wrong, or late: nobody knows then what it asks for, and from where. */
const HEADLESS: readonly number[] = [408, 431];

/** The responses of an operation. */
export function responses(operation: Operation, service: ApiContext): Record<string, Json> {
  const { success, method, form } = operation;
  const context = Object.keys(contextHeaders(service));
  const all = headers(service);
  const refer = (names: readonly string[]): Json =>
    Object.fromEntries(
      names.map((name) => [(all[name] as Header).name, { $ref: `#/components/headers/${name}` }]),
    );
  const perhaps = (names: readonly string[]): Json =>
    Object.fromEntries(
      names.map((name) => {
        const { name: header, ...rest } = all[name] as Header;
        return [header, { ...rest, required: false }];
      }),
    );
  const special: Readonly<Record<number, HeaderName>> = {
    405: method === 'GET' ? 'Allow' : 'AllowPost',
    429: 'RetryAfter',
    503: 'RetryAfter',
  };

  const ofErrors = [...errorExamples(operation, service)].map(([status, examples]): [string, Json] => [
    String(status),
    {
      description: WHEN[status],
      headers: {
        ...refer([...COMMON, 'ContentLength']),
        ...(special[status] && refer([special[status]])),
        ...(HEADLESS.includes(status) ? form && perhaps(context) : refer(context)),
      },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
    },
  ]);
  return {
    200: {
      description: success.description,
      headers: refer([...COMMON, ...success.headers, ...context]),
      content: success.content(service),
    },
    ...Object.fromEntries(ofErrors),
  };
}

const COMMON: readonly HeaderName[] = ['RequestId', 'NoSniff'];
