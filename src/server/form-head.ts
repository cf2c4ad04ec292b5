import type { RequestHandler } from 'express';
import { serviceError } from '../errors.ts';

/** Refusals by the head of a request that should bring a form. */

export interface FormRules {
  /** Names of the form's text fields. */
  readonly fields: readonly string[];
  readonly maxFiles: number;
  /** Per file. */
  readonly maxFileBytes: number;
}

/** Names that the forms have for files. */
const FILE_PARTS = ['file', 'files', 'files[]'];

/** Bytes that a body may have besides its files: far more than the fields that mean anything here can take. */
const MAX_OVERHEAD_BYTES = 10 * 1024 ** 2;

/**
 * Refuses fields in the query, which would be ignored there. Refuses a client that asks whether to send a body
 * (`Expect: 100-continue`) when that body is longer than one with the most and largest files.
 */
export function checkFormHead({ fields, maxFiles, maxFileBytes }: FormRules): RequestHandler {
  const names = [...FILE_PARTS, ...fields];
  const maxBytes = maxFiles * maxFileBytes + MAX_OVERHEAD_BYTES;
  return (req, _res, next) => {
    const misplaced = names.find((name) => Object.hasOwn(req.query, name));
    if (misplaced !== undefined) throw serviceError('FIELD_IN_QUERY', misplaced);
    const { expect, 'content-length': length } = req.headers;
    if (expect?.toLowerCase() === '100-continue' && Number(length) > maxBytes) {
      throw serviceError('FILE_TOO_LARGE', 'The request body', maxBytes);
    }
    next();
  };
}
