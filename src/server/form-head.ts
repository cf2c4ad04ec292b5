/** @module Rejects form requests by their request line and headers. */
import type { RequestHandler } from 'express';
import { serviceError } from '../errors.ts';

/** Names and limits of a form. */
export interface FormRules {
  /** Names of the form's text fields. */
  readonly fields: readonly string[];
  readonly maxFiles: number;
  /** Maximum size of each file. */
  readonly maxFileBytes: number;
}

/** Names of the file fields. */
const FILE_PARTS = ['file', 'files', 'files[]'];

/** Bytes allowed in a body in addition to its files: far more than all known fields together can have. */
const MAX_OVERHEAD_BYTES = 10 * 1024 ** 2;

/**
 * Creates middleware that rejects form fields in the query string, where they would be ignored. It also rejects a body
 * that is announced with `Expect: 100-continue` and is longer than the largest possible form.
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
