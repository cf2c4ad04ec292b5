/** @module The route for converting one file. */
import type { RequestHandler } from 'express';
import { baseNameOf } from '../../conversion/filename.ts';
import type { Parse } from '../../conversion/form-options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import type { Convert } from '../../conversion/types.ts';
import { ClientDisconnectedError } from '../../errors.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { OUTPUTS } from '../../formats.ts';
import { clientKey } from '../client-key.ts';
import type { ReceivedFile } from '../file-collector.ts';
import { setLogFields } from '../request-log.ts';
import { disconnectSignal, sendResult, setNotes, setQuality, setServerTiming } from '../response.ts';
import { expectedBytes, receiveUpload, type UploadOptions } from '../upload.ts';

/** Dependencies of {@link convertRoute}. */
export interface ConvertRouteDeps {
  readonly workspaces: Workspaces;
  readonly convert: Convert;
  readonly parse: Parse<ConvertOptions>;
  readonly limits: Pick<UploadOptions, 'maxFileBytes' | 'timeoutMs' | 'accepts'>;
}

/** Handles `POST /convert`: converts one image, sends the result, and deletes all files. */
export function convertRoute({ workspaces, convert, parse, limits }: ConvertRouteDeps): RequestHandler {
  const rules: UploadOptions = {
    ...limits,
    fileField: 'file',
    fileFieldAliases: [],
    maxFiles: 1,
    acceptsArchives: false,
    label: () => 'The file',
    skipInvalid: () => false,
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
      const file = files[0] as ReceivedFile;
      const options = parse(fields);
      const { format } = options;
      setLogFields(res, { input: file.type, output: format, files: 1 });

      const result = await convert({ ...file, room, client }, options, signal);

      if (signal.aborted) throw new ClientDisconnectedError();
      setServerTiming(res, { upload: uploadedMs, queue: result.queuedMs, convert: result.convertedMs });
      setNotes(res, result.notes);
      setQuality(res, result.quality);
      const name = `${baseNameOf(file.name)}.${OUTPUTS[format].extension}`;
      await sendResult(res, result, name, { format, stallMs: limits.timeoutMs, room });
    });
  };
}
