/** @module The route for converting several files. */
import type { RequestHandler } from 'express';
import { type BatchItemResult, convertAll } from '../../conversion/batch.ts';
import type { BatchOptions, TextField } from '../../conversion/options.ts';
import { ClientDisconnectedError } from '../../errors.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { sendArchive } from '../archive-response.ts';
import type { ReceivedFile, RejectedFile } from '../file-collector.ts';
import { setLogFields } from '../request-log.ts';
import { setBatchNotes, setBatchQuality, setServerTiming } from '../response.ts';
import type { UploadOptions } from '../upload.ts';
import { type FormRouteDeps, formRoute } from './form.ts';

/** Handles `POST /batch`: converts many images, sends one ZIP archive, and deletes all files. */
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
    skipInvalid: requestsSkip,
  };

  return formRoute(deps, rules, async (form, res) => {
    const { files, client, disk, signal, uploadedMs } = form;
    const { options, onError } = form.options;
    const started = performance.now();
    const received = files.filter(isReceived);
    const types = [...new Set(received.map(({ type }) => type))];
    setLogFields(res, { input: types.join(','), output: options.format, files: files.length });
    const sources = received.map((file) => ({ ...file, disk, client }));
    const outcomes = await convertAll(sources, convert, options, onError, signal);
    const results = files.map((file) => ({
      name: file.name,
      outcome: isReceived(file)
        ? (outcomes[received.indexOf(file)] as BatchItemResult)
        : { error: file.error },
    }));
    const [first] = results;
    if (results.every(({ outcome }) => 'error' in outcome) && first && 'error' in first.outcome)
      throw first.outcome.error;

    const convertedMs = performance.now() - started;
    if (signal.aborted) throw new ClientDisconnectedError();
    setServerTiming(res, { upload: uploadedMs, queue: queueTime(outcomes), convert: convertedMs });
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
    await sendArchive(res, results, { format, stallMs: config.UPLOAD_TIMEOUT_MS, disk, signal });
  });
}

/**
 * Returns whether invalid files are skipped. Takes effect only for files sent after the field: until then, the first
 * invalid file fails the request.
 */
function requestsSkip(fields: readonly TextField[]): boolean {
  return fields.some(([name, value]) => name === 'on_error' && value.toLowerCase() === 'skip');
}

function isReceived(file: ReceivedFile | RejectedFile): file is ReceivedFile {
  return 'folder' in file;
}

/** Returns how long the batch was queued, in milliseconds: until its first conversion started. */
function queueTime(outcomes: readonly BatchItemResult[]): number {
  const waits = outcomes.flatMap((outcome) => ('converted' in outcome ? outcome.converted.queuedMs : []));
  return waits.length > 0 ? Math.min(...waits) : 0;
}
