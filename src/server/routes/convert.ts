/** @module The route for converting one file. */
import type { RequestHandler } from 'express';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { ClientDisconnectedError } from '../../errors.ts';
import { OUTPUTS } from '../../formats.ts';
import { baseNameOf } from '../../text.ts';
import type { ReceivedFile } from '../file-collector.ts';
import { setLogFields } from '../request-log.ts';
import { sendResult, setNotes, setQuality, setServerTiming } from '../response.ts';
import type { UploadOptions } from '../upload.ts';
import { type FormRouteDeps, formRoute } from './form.ts';

/** Handles `POST /convert`: converts one image, sends the result, and deletes all files. */
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
    setServerTiming(res, { upload: uploadedMs, queue: result.queuedMs, convert: result.convertedMs });
    setNotes(res, result.notes);
    setQuality(res, result.quality);
    const name = `${baseNameOf(file.name)}.${OUTPUTS[format].extension}`;
    await sendResult(res, result, name, { format, stallMs: config.UPLOAD_TIMEOUT_MS, disk });
  });
}
