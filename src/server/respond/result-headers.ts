/** @module Headers of results that are documented, exposed to other sites, and not of errors. */
import { REVEALED_KINDS } from '../../images/revealed/fields-table.ts';
import { NOTES } from '../../tables/notes.ts';

const text = (description: string) => ({ description, schema: { type: 'string' } });
const integer = (description: string) => ({ description, schema: { type: 'integer' } });

const notes = Object.entries(NOTES).map(([note, { api }]) => `\`${note}\`: ${api}.`);

/** Descriptions of the headers in OpenAPI. `docs/api.md` describes the headers of all responses. */
export const RESULT_HEADERS = {
  'Content-Disposition': text(
    'The sanitized name of the input, with the extension of the output format (RFC 6266), `converted.zip`, or for `combine` the `name`, such as `combined.pdf`.',
  ),
  'Repr-Digest': text('SHA-256 of the body (RFC 9530). Absent from archives.'),
  ETag: text(
    'The conversion key as an entity tag, for `If-None-Match`. Weak for a PDF, which contains the time of its conversion. Absent from archives.',
  ),
  'Server-Timing': text(
    'Time spent on the upload, in the queue, on the inspection and repair of the input, and on the conversion, in milliseconds.',
  ),
  'X-Conversion-Key': text(
    'SHA-256 of the digest of the source, the planned commands and the versions of the tools that run in them. Equal keys mean equal results, except the dates in a PDF. Absent from archives.',
  ),
  'X-Conversion-Notes': text(
    `Differences between the input and the result, as a list of tokens. Absent if there are none. ${notes.join(' ')} For a batch, each token has the indexes of its files, from 0: \`alpha-flattened;files="0 3"\`. The indexes are omitted if there are more than 100.`,
  ),
  'X-Conversion-Quality': text('The same as `X-Image-Quality`.'),
  'X-Image-Height': integer(
    'Height of the result in pixels, or of the largest image of an icon. Absent for a PDF.',
  ),
  'X-Image-Quality': text(
    'The quality that the result was encoded with, 1 to 100. Absent if the request has neither `max_bytes` nor `quality=auto`. For a batch, each value has indexes as in `X-Conversion-Notes`.',
  ),
  'X-Image-Width': integer(
    'Width of the result in pixels, or of the largest image of an icon. Absent for a PDF.',
  ),
  'X-Kept-Metadata': text(
    'Kinds of `X-Removed-Metadata` that the result still has, with `metadata=all` or `copyright`. Absent if there are none.',
  ),
  'X-Removed-Metadata': text(
    `What EXIF, IPTC and XMP of the image give away and the result does not have, as a list of kinds, never values: ${REVEALED_KINDS.map((kind) => `\`${kind}\``).join(', ')}. Absent if there are none. For a batch, each kind has indexes as in \`X-Conversion-Notes\`.`,
  ),
  'X-Skipped-Files': text(
    'Positions of the files that `on_error=skip` has left out of a combined file, from 0, as a list: `1, 4`. Absent if there are none.',
  ),
};

export type ResultHeader = keyof typeof RESULT_HEADERS;
