/** @module The routes that convert files. Each receives a form, converts its files, sends the result and deletes all files. */
import type { RequestHandler, Response } from 'express';
import type { Config } from '../../config.ts';
import { type BatchItemResult, convertBatch } from '../../conversion/batch.ts';
import { type BatchOptions, type Parse, skipsErrors } from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import type { Convert } from '../../conversion/types.ts';
import { ClientDisconnectedError, serviceError } from '../../errors.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { type InputType, OUTPUTS } from '../../formats.ts';
import { baseNameOf, sanitizeForDisplay } from '../../text.ts';
import { createDeflations } from '../archive-entries.ts';
import { sendArchive } from '../archive-response.ts';
import { clientOf } from '../clients.ts';
import { setLogFields } from '../request-log.ts';
import { disconnectSignal, sendResult } from '../response.ts';
import { setBatchNotes, setBatchQuality, setNotes, setQuality, setServerTiming } from '../result-headers.ts';
import {
  expectedBytes,
  type ReceivedFile,
  type RejectedFile,
  receiveUpload,
  type Upload,
  type UploadOptions,
} from '../upload.ts';

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

/** Creates the handler of `POST /convert`, which converts one image. */
export function convertRoute(deps: FormRouteDeps<ConvertOptions>): RequestHandler {
  const { config, accepts, convert } = deps;
  const rules: UploadOptions = {
    config,
    accepts,
    fileField: 'file',
    fileFieldAliases: [],
    maxFiles: 1,
    acceptsArchives: false,
    label: () => 'The file',
    skipInvalid: () => false,
  };

  return formRoute(deps, rules, async ({ files, options, client, disk, signal, uploadedMs }, res) => {
    const file = files[0] as ReceivedFile;
    const { format } = options;
    setLogFields(res, { input: file.type, output: format, files: 1 });

    const result = await convert({ ...file, disk, client }, options, signal);

    if (signal.aborted) throw new ClientDisconnectedError();
    const { queuedMs, preparedMs, convertedMs } = result;
    setServerTiming(res, { upload: uploadedMs, queue: queuedMs, prepare: preparedMs, convert: convertedMs });
    setNotes(res, result.notes);
    setQuality(res, result.quality);
    const name = `${baseNameOf(file.name)}.${OUTPUTS[format].extension}`;
    await sendResult(res, result, name, { format, stallMs: config.UPLOAD_TIMEOUT_MS, disk });
  });
}

/** Creates the handler of `POST /batch`, which converts many images and sends one ZIP archive. */
export function batchRoute(deps: FormRouteDeps<BatchOptions>): RequestHandler {
  const { config, accepts, convert } = deps;
  const rules: UploadOptions = {
    config,
    accepts,
    fileField: 'files',
    fileFieldAliases: ['files[]'],
    maxFiles: config.MAX_BATCH_FILES,
    acceptsArchives: true,
    label: (position, name) =>
      name ? `File ${position} ("${sanitizeForDisplay(name, 80)}")` : `File ${position}`,
    skipInvalid: skipsErrors,
  };
  const deflations = createDeflations();

  return formRoute(deps, rules, async (form, res) => {
    const { files, client, disk, signal, uploadedMs } = form;
    const { options, onError } = form.options;
    const started = performance.now();
    const received = files.filter(isReceived);
    const types = [...new Set(received.map(({ type }) => type))];
    setLogFields(res, { input: types.join(','), output: options.format, files: files.length });
    const sources = received.map((file) => ({ ...file, disk, client }));
    const all = await convertBatch(sources, convert, options, onError, signal);
    const outcomes = new Map(all.map((outcome, at) => [received[at] as ReceivedFile, outcome]));
    const results = files.map((file) => ({
      name: file.name,
      outcome: isReceived(file) ? (outcomes.get(file) as BatchItemResult) : { error: file.error },
    }));
    const [first] = results;
    if (results.every(({ outcome }) => 'error' in outcome) && first && 'error' in first.outcome)
      throw first.outcome.error;

    const convertedMs = performance.now() - started;
    if (signal.aborted) throw new ClientDisconnectedError();
    setServerTiming(res, { upload: uploadedMs, ...firstWait(all), convert: convertedMs });
    const converted = results.map(({ outcome }) => ('converted' in outcome ? outcome.converted : undefined));
    setBatchNotes(
      res,
      converted.map((result) => result?.notes ?? []),
    );
    setBatchQuality(
      res,
      converted.map((result) => result?.quality),
    );
    const { format } = options;
    await sendArchive(res, results, {
      ...{ format, stallMs: config.UPLOAD_TIMEOUT_MS, disk, signal },
      ...{ deflations, client, deflateTimeoutMs: config.CONVERT_TIMEOUT_MS },
    });
  });
}

function isReceived(file: ReceivedFile | RejectedFile): file is ReceivedFile {
  return 'folder' in file;
}

/** Returns the times in the queue and of the preparation of the file that waited least, in milliseconds. */
function firstWait(outcomes: readonly BatchItemResult[]): { queue: number; prepare: number } {
  const waits = outcomes.flatMap((outcome) =>
    'converted' in outcome
      ? { queue: outcome.converted.queuedMs, prepare: outcome.converted.preparedMs }
      : [],
  );
  return waits.sort((a, b) => a.queue - b.queue)[0] ?? { queue: 0, prepare: 0 };
}

/** A form whose files are stored and whose text fields are valid. */
interface ReceivedForm<Options> {
  readonly files: Upload['files'];
  readonly options: Options;
  /** Key of the client for fairness between clients, see {@link clientOf}. */
  readonly client: string;
  readonly disk: DiskAccount;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Time of the upload, in milliseconds. */
  readonly uploadedMs: number;
}

/**
 * Creates a handler that receives a form, lets `respond` convert its files and send the result, and deletes all files.
 */
function formRoute<Options>(
  { workspaces, parse }: FormRouteDeps<Options>,
  rules: UploadOptions,
  respond: (form: ReceivedForm<Options>, res: Response) => Promise<void>,
): RequestHandler {
  return async (req, res) => {
    const started = performance.now();
    const signal = disconnectSignal(res);
    const { key: client } = clientOf(req);
    await workspaces.use({ client, bytes: expectedBytes(req, rules) }, async (workspace) => {
      const { disk } = workspace;
      const { files, fields } = await receiveUpload(req, workspace, rules, signal);
      disk.releaseUnsent();
      const uploadedMs = performance.now() - started;
      await respond({ files, options: parse(fields), client, disk, signal, uploadedMs }, res);
    });
  };
}

/** Names and limits of a form. */
interface FormRules {
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
