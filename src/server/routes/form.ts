/** @module Common parts of both form routes: checks of the request's head, and receiving its files. */
import type { RequestHandler, Response } from 'express';
import type { Config } from '../../config.ts';
import type { Parse } from '../../conversion/options.ts';
import type { Convert } from '../../conversion/types.ts';
import { serviceError } from '../../errors.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import type { Workspaces } from '../../files/workspace.ts';
import type { InputType } from '../../formats.ts';
import { clientKey } from '../client-key.ts';
import { disconnectSignal } from '../response.ts';
import { expectedBytes, receiveUpload, type Upload, type UploadOptions } from '../upload.ts';

/** Dependencies of the route of a form. */
export interface FormRouteDeps<Options> {
  readonly config: Config;
  readonly workspaces: Workspaces;
  readonly convert: Convert;
  /** Parses the text fields. */
  readonly parse: Parse<Options>;
  /** Types of images that this instance converts. */
  readonly accepts: readonly InputType[];
}

/** A form whose files are stored and whose text fields are valid. */
export interface ReceivedForm<Options> {
  readonly files: Upload['files'];
  readonly options: Options;
  /** Key of the client for fairness between clients, see {@link clientKey}. */
  readonly client: string;
  readonly disk: DiskAccount;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Time of the upload, in milliseconds. */
  readonly uploadedMs: number;
}

/** Names and limits of a form. */
export interface FormRules {
  /** Names of the form's text fields. */
  readonly fields: readonly string[];
  readonly maxFiles: number;
  readonly config: Config;
}

/** Names of the file fields. */
const FILE_PARTS = ['file', 'files', 'files[]'];

/** Bytes allowed in a body in addition to its files: far more than all known fields together can have. */
const MAX_OVERHEAD_BYTES = 10 * 1024 ** 2;

/**
 * Creates middleware that rejects form fields in the query string, where they would be ignored. It also rejects a body
 * that is announced with `Expect: 100-continue` and is longer than the largest possible form.
 */
export function checkFormHead({ fields, maxFiles, config }: FormRules): RequestHandler {
  const names = [...FILE_PARTS, ...fields];
  const maxBytes = maxFiles * config.MAX_FILE_BYTES + MAX_OVERHEAD_BYTES;
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

/**
 * Creates a handler that receives a form, lets `respond` convert its files and send the result, and deletes all files.
 */
export function formRoute<Options>(
  { workspaces, parse }: FormRouteDeps<Options>,
  rules: UploadOptions,
  respond: (form: ReceivedForm<Options>, res: Response) => Promise<void>,
): RequestHandler {
  return async (req, res) => {
    const started = performance.now();
    const signal = disconnectSignal(res);
    const client = clientKey(req);
    await workspaces.use({ client, bytes: expectedBytes(req, rules) }, async (workspace) => {
      const { disk } = workspace;
      const { files, fields } = await receiveUpload(req, workspace, rules, signal);
      disk.received();
      const uploadedMs = performance.now() - started;
      await respond({ files, options: parse(fields), client, disk, signal, uploadedMs }, res);
    });
  };
}
