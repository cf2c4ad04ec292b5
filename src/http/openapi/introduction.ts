import { serviceError } from '../../errors.ts';
import { ALLOWED } from '../endpoint.ts';
import { errorBody } from '../error-handler.ts';
import type { ApiContext } from './facts.ts';

/** What holds for all endpoints, in words. */
export function introduction(base: string, { config }: ApiContext): string {
  const invalid = serviceError('FIELD_INVALID', 'quality', '200', 'a whole number from 1 to 100');
  const shape = JSON.stringify(errorBody(invalid.status, invalid.message), null, 2);
  const perMinute = config.RATE_LIMIT_PER_MINUTE;
  return [
    'There are no accounts and no keys. Forms are `multipart/form-data`; answers are a file or JSON.',
    '```sh\ncurl -F file=@photo.jpg -F output_format=webp ' +
      `http://localhost:3000${base}/convert -o photo.webp\n\`\`\``,
    `Every error has one shape, and its \`code\` is the HTTP status:\n\n\`\`\`json\n${shape}\n\`\`\``,
    `A path that is not listed here is answered with 404: “${serviceError('NOT_FOUND').message}” And what is not even a request with 400: “${serviceError('NOT_HTTP').message}” Paths have one spelling: case and a slash at the end count.`,
    `Where there is GET, there is HEAD. OPTIONS is answered with 204 and the methods of the path in \`Allow\`: \`${ALLOWED.GET}\` or \`${ALLOWED.POST}\`.`,
    perMinute > 0
      ? `One address (an IPv6 network of 64 bits is one) may send ${perMinute} requests a minute, in a window that starts with its first. Every answer below \`${base}\` says how many are left.`
      : 'There is no rate limit here.',
    `Outside of \`${base}\`, and never counted, are the probes \`/livez\`, which says that the process answers, and \`/readyz\`, which says with 200 or 503 whether it should be sent requests.`,
  ].join('\n\n');
}
