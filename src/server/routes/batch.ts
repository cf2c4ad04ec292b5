/** @module The route for converting several files. */
import type { RequestHandler } from 'express';
import { type BatchItemResult, convertAll } from '../../conversion/batch.ts';
import type { BatchOptions, Parse, TextField } from '../../conversion/form-options.ts';
import type { Convert } from '../../conversion/types.ts';
import { ClientDisconnectedError } from '../../errors.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { sendArchive } from '../archive-response.ts';
import { clientKey } from '../client-key.ts';
import type { ReceivedFile, RejectedFile } from '../file-collector.ts';
import { setLogFields } from '../request-log.ts';
import { disconnectSignal, setBatchNotes, setBatchQuality, setServerTiming } from '../response.ts';
import { expectedBytes, receiveUpload, type UploadOptions } from '../upload.ts';

/** Dependencies of {@link batchRoute}. */
export interface BatchRouteDeps {
  readonly workspaces: Workspaces;
  readonly convert: Convert;
  readonly parse: Parse<BatchOptions>;
  readonly limits: Pick<UploadOptions, 'maxFiles' | 'maxFileBytes' | 'timeoutMs' | 'accepts'>;
}

/** Handles `POST /batch`: converts many images, sends one ZIP archive, and deletes all files. */
export function batchRoute({ workspaces, convert, parse, limits }: BatchRouteDeps): RequestHandler {
  const rules: UploadOptions = {
    ...limits,
    fileField: 'files',
    fileFieldAliases: ['files[]'],
    acceptsArchives: true,
    label: (position, name) =>
      name ? `File ${position} ("${sanitizeForDisplay(name, 80)}")` : `File ${position}`,
    skipInvalid: requestsSkip,
  };

  return async (req, res) => {
    const started = performance.now();
    const signal = disconnectSignal(res);
    const client = clientKey(req);
    await workspaces.use({ client, bytes: expectedBytes(req, rules) }, async (workspace) => {
      const { room } = workspace;
      const { files, fields } = await receiveUpload(req, workspace, rules, signal);
      room.received();
      const uploadedMs = performance.now() - started;
      const { options, onError } = parse(fields);

      const received = files.filter(isReceived);
      const types = [...new Set(received.map(({ type }) => type))];
      setLogFields(res, { input: types.join(','), output: options.format, files: files.length });
      const sources = received.map((file) => ({ ...file, room, client }));
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

      const convertedMs = performance.now() - started - uploadedMs;
      if (signal.aborted) throw new ClientDisconnectedError();
      setServerTiming(res, { upload: uploadedMs, queue: queueTime(outcomes), convert: convertedMs });
      const converted = results.map(({ outcome }) =>
        'converted' in outcome ? outcome.converted : undefined,
      );
      setBatchNotes(
        res,
        converted.map((result) => result?.notes ?? []),
      );
      setBatchQuality(
        res,
        converted.map((result) => result?.quality),
      );
      const { format } = options;
      await sendArchive(res, results, { format, stallMs: limits.timeoutMs, room, signal });
    });
  };
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
