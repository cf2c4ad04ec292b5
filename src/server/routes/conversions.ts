/** @module The routes that convert files: each receives a form, and deletes all files after. */
import type { RequestHandler, Response } from 'express';
import { naturalOrder } from '../../base/text.ts';
import { type ConvertBatchFile, convertBatch, convertFrames, describeBatch } from '../../conversion/batch.ts';
import { assertCombinable } from '../../conversion/combine.ts';
import type {
  ConversionOutcome,
  ConversionResult,
  Parse,
  TextField,
  Variant,
} from '../../conversion/context.ts';
import type { ConversionEngine } from '../../conversion/engine.ts';
import type { Identify } from '../../conversion/identify.ts';
import { withWatermark } from '../../conversion/input/watermark-image.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import {
  type FormOptions,
  type IdentifyFields,
  type Presets,
  skipsErrors,
} from '../../conversion/request/forms.ts';
import { onlyResult } from '../../conversion/request/targets.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { mapInTurns } from '../../images/containers/event-loop.ts';
import type { Config } from '../../tables/config.ts';
import { ClientDisconnectedError, KnownResultError, serviceError } from '../../tables/errors.ts';
import { combinesFrames, type InputType } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { setLogFields } from '../middleware.ts';
import type { ReceivedFile, RejectedFile, UploadOptions } from '../receive/file-collector.ts';
import { imageBodyOf, queryOf, type ReceivedBody, receiveBody } from '../receive/upload.ts';
import { sendArchive } from '../respond/archive.ts';
import {
  listsKey,
  sendResult,
  setBatchHeaders,
  setConversionKey,
  setResultHeaders,
  setServerTiming,
} from '../respond/response.ts';

export interface FormRouteDeps<Options> {
  readonly config: Config;
  readonly workspaces: Workspaces;
  readonly parse: Parse<Options>;
  /** Types of images that this instance converts. */
  readonly accepts: readonly InputType[];
  readonly fields: readonly string[];
}

export interface ConvertRouteDeps
  extends FormRouteDeps<FormOptions>,
    Pick<ConversionEngine, 'convert' | 'convertVariants' | 'combine' | 'toolchain'> {
  readonly presets: Presets;
}

/** Returns the watermark of a request, or that of its preset. */
const watermarkOf = ({ watermark, options }: ReceivedForm<FormOptions | IdentifyFields>) =>
  watermark ?? options.watermark;

/** Creates the handler of `POST /convert`, which converts one image. */
export function convertRoute(deps: ConvertRouteDeps): RequestHandler {
  const { convert, convertVariants } = deps;
  const rules = { fileField: 'file', maxFiles: 1, isBatch: false, acceptsImage: true };
  return formRoute(deps, rules, async (form, res) => {
    const { files, client, disk, signal, uploadedMs } = form;
    const { options, variants, onError, combination } = form.options;
    if (combination) return sendCombined(form, combination, deps, res);
    const file = files[0] as ReceivedFile;
    const { format } = options;
    varyByFormat(res, options, variants);
    setLogFields(res, { input: file.type, output: format, files: 1 });
    const source = { ...file, watermark: watermarkOf(form), disk, client };
    if (variants.length > 0) {
      const outcomes = await convertVariants(source, variants, onError, signal);
      return sendAll(form, [outcomes], res);
    }

    const ifNoneMatch = res.req.headers['if-none-match'];
    const knows = (key: string): boolean => listsKey(ifNoneMatch, key);
    const result = await convert({ ...source, knows }, options, signal).catch((error) => {
      if (error instanceof KnownResultError) return error;
      throw error;
    });

    if (signal.aborted) throw new ClientDisconnectedError();
    setConversionKey(res, result.key, format);
    if (result instanceof KnownResultError) {
      res.status(304).setHeader('Cache-Control', 'no-store').end();
      return;
    }
    setLogFields(res, { output: result.format });
    setServerTiming(res, { ...result, uploadedMs });
    setResultHeaders(res, { ...result, notes: [...result.notes, ...form.notes] });
    await sendResult(res, result, file.name, disk);
  });
}

/** Creates the handler of `POST /batch`, which converts many images and sends one ZIP archive. */
export function batchRoute(deps: ConvertRouteDeps): RequestHandler {
  const { config, presets } = deps;
  const rules = {
    fileField: 'files',
    maxFiles: config.MAX_BATCH_FILES,
    isBatch: true,
    acceptsImage: false,
    skipInvalid: (fields: readonly TextField[]) => skipsErrors(fields, presets),
  };
  return formRoute(deps, rules, async (form, res) => {
    const { options, variants, combination } = form.options;
    if (combination) return sendCombined(form, combination, deps, res);
    varyByFormat(res, options, variants);
    await sendAll(form, await convertFiles(form, form.files, deps, res), res);
  });
}

/** Returns the outcomes of each file, in this order. In one animation, all frames have one size. */
async function convertFiles(
  form: ReceivedForm<FormOptions>,
  files: ReceivedBody['files'],
  { convertVariants }: ConvertRouteDeps,
  res: Response,
): Promise<(readonly ConversionOutcome[])[]> {
  const { client, disk, signal } = form;
  const { options, variants, onError, combination } = form.options;
  const watermark = watermarkOf(form);
  const received = files.filter(isReceived);
  const types = [...new Set(received.map(({ type }) => type))];
  setLogFields(res, { input: types.join(','), output: options.format, files: files.length });
  const sources = received.map((file) => ({ ...file, watermark, disk, client }));
  const results = variants.length > 0 ? variants : onlyResult(options);
  const convertTo =
    (wanted: readonly Variant[]): ConvertBatchFile =>
    (source, stop, group) =>
      convertVariants(source, wanted, onError, stop, group);
  const toFrames = (wanted: ConvertOptions): ConvertBatchFile =>
    convertTo(results.map(({ name, options: { pages } }) => ({ name, options: { ...wanted, pages } })));
  const all =
    combination && combinesFrames(combination.format)
      ? await convertFrames(sources, options, toFrames, onError, signal)
      : await convertBatch(sources, convertTo(results), onError, signal);
  const outcomes = all.values();
  return files.map((file) =>
    isReceived(file) ? (outcomes.next().value as readonly ConversionOutcome[]) : [{ error: file.error }],
  );
}

/** Converts the files of a request, and sends all results as one file. */
async function sendCombined(
  form: ReceivedForm<FormOptions>,
  { order, name, ...combination }: NonNullable<FormOptions['combination']>,
  deps: ConvertRouteDeps,
  res: Response,
): Promise<void> {
  const { files, workspace, client, disk, signal } = form;
  assertCombinable(combination.format, deps.toolchain);
  const compare = naturalOrder();
  const ordered =
    order === 'name' ? files.toSorted((one, other) => compare(one.name ?? '', other.name ?? '')) : files;
  const outcomes = await convertFiles(form, ordered, deps, res);
  const [first] = outcomes.flat();
  const converted = convertedIn(outcomes.flat());
  if (converted.length === 0 && first && 'error' in first) throw first.error;
  const folder = await workspace.folder('combined');
  const combined = await deps.combine(converted, combination, { folder, disk, client, signal });
  if (signal.aborted) throw new ClientDisconnectedError();
  const ofFiles = files.map((file) => outcomes[ordered.indexOf(file)] ?? []);
  const skipped = ofFiles.flatMap((own, index) => (own.some((outcome) => 'error' in outcome) ? index : []));
  setConversionKey(res, combined.key, combination.format);
  const convertedMs = performance.now() - form.receivedAt;
  setServerTiming(res, { ...firstWait(converted), uploadedMs: form.uploadedMs, convertedMs });
  setResultHeaders(res, combined);
  if (skipped.length > 0) res.setHeader('X-Skipped-Files', skipped.join(', '));
  setBatchHeaders(
    res,
    ofFiles.map((ofFile, index) => {
      const own = convertedIn(ofFile);
      const unique = <T>(list: readonly T[]): T[] => [...new Set(list)];
      const more: readonly Note[] = skipped.includes(index) ? ['files-skipped'] : form.notes;
      return {
        notes: unique([...own.flatMap(({ notes }) => notes), ...more]),
        removed: unique(own.flatMap(({ removed }) => removed)),
        kept: unique(own.flatMap(({ kept }) => kept)),
      };
    }),
  );
  await sendResult(res, combined, name, disk);
}

const convertedIn = (outcomes: readonly ConversionOutcome[]): ConversionResult[] =>
  outcomes.flatMap((outcome) => ('converted' in outcome ? outcome.converted : []));

/** Declares that the response depends on `Accept` if a format does. */
function varyByFormat(res: Response, options: ConvertOptions, variants: readonly Variant[] = []): void {
  if ([options, ...variants.map((variant) => variant.options)].some(({ accepted }) => accepted))
    res.vary('Accept');
}

/** Sends all results of a request. `outcomes` has those of each file. */
async function sendAll(
  { files, options, notes, disk, signal, uploadedMs, receivedAt }: ReceivedForm<FormOptions>,
  outcomes: readonly (readonly ConversionOutcome[])[],
  res: Response,
): Promise<void> {
  const { manifest, variants } = options;
  const results = files.flatMap((file, index) => {
    const about = {
      index,
      name: file.name,
      archiveFolder: isReceived(file) ? file.archiveFolder : undefined,
    };
    return (outcomes[index] ?? []).map((outcome) => ({ ...about, outcome: withNotes(outcome, notes) }));
  });
  const [first] = results;
  if (results.every(({ outcome }) => 'error' in outcome) && first && 'error' in first.outcome)
    throw first.outcome.error;
  const converted = results.map(({ outcome }) => ('converted' in outcome ? outcome.converted : undefined));
  if (signal.aborted) throw new ClientDisconnectedError();
  const convertedMs = performance.now() - receivedAt;
  setServerTiming(res, { ...firstWait(converted), uploadedMs, convertedMs });
  if (variants.length === 0) setBatchHeaders(res, converted);
  await sendArchive(res, results, disk, manifest);
}

/** Adds the notes of the request to those of a result. */
function withNotes(outcome: ConversionOutcome, notes: readonly Note[]): ConversionOutcome {
  if (!('converted' in outcome)) return outcome;
  const { converted } = outcome;
  return { ...outcome, converted: { ...converted, notes: [...converted.notes, ...notes] } };
}

/** Returns the times in the queue and of preparation of the file that waited least, in ms. */
function firstWait(results: readonly (ConversionResult | undefined)[]) {
  const [first] = results.filter((result) => result !== undefined).sort((a, b) => a.queuedMs - b.queuedMs);
  return { queuedMs: first?.queuedMs ?? 0, preparedMs: first?.preparedMs ?? 0 };
}

function isReceived(file: ReceivedFile | RejectedFile): file is ReceivedFile {
  return 'folder' in file;
}

/** Creates the handler of `POST /identify`, which describes images. */
export function identifyRoute(deps: FormRouteDeps<IdentifyFields>, identify: Identify): RequestHandler {
  const rules = {
    fileField: 'files',
    singleField: 'file',
    maxFiles: deps.config.MAX_BATCH_FILES,
    isBatch: true,
    acceptsImage: true,
  };
  return formRoute(deps, rules, async (form, res) => {
    const { files, isSingle, options, notes, client, disk, signal } = form;
    const received = files.filter(isReceived);
    const watermark = watermarkOf(form);
    const wanted =
      options.isWanted || watermark
        ? { plan: options.plan, options: withWatermark(options.options, watermark) }
        : undefined;
    if (wanted) varyByFormat(res, wanted.options);
    setLogFields(res, {
      input: [...new Set(received.map(({ type }) => type))].join(','),
      files: files.length,
    });
    const images = await describeBatch(received, signal, ({ name: _, ...file }, signal) =>
      identify({ ...file, disk, client }, { wanted, reveal: options.reveal }, signal),
    );
    // An explanation can have a megabyte of arguments, so each is encoded in a turn of its own.
    const described = await mapInTurns(images, ({ conversion, ...image }, at) =>
      Buffer.from(
        JSON.stringify(
          {
            name: received[at]?.name || null,
            ...image,
            conversion: conversion && { ...conversion, notes: [...conversion.notes, ...notes] },
          },
          res.app.get('json replacer'),
        ),
      ),
    );
    if (signal.aborted) throw new ClientDisconnectedError();
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Content-Type', 'application/json; charset=utf-8');
    res.send(Buffer.concat(isSingle ? described : listJson('images', described)));
  });
}

/** Returns the parts of a JSON object with a list of values in JSON. */
const listJson = (name: string, values: readonly Buffer[]): Buffer[] => [
  Buffer.from(`{"${name}":[`),
  ...values.flatMap((value, at) => (at === 0 ? [value] : [Buffer.from(','), value])),
  Buffer.from(']}'),
];

/** A form whose files are stored and whose text fields are valid. */
interface ReceivedForm<Options> extends ReceivedBody {
  readonly options: Options;
  /** What the results of this form have in common. */
  readonly notes: readonly Note[];
}

const FILE_PARTS = ['file', 'files', 'files[]', 'files[0]'];

/**
 * Creates a handler that receives a form or an image, and lets `respond` convert its files and send
 * the result. Rejects form fields in the query string, where they would be ignored.
 */
function formRoute<Options>(
  { config, accepts, workspaces, parse, fields: names }: FormRouteDeps<Options>,
  kind: Omit<UploadOptions, 'config' | 'accepts'>,
  respond: (form: ReceivedForm<Options>, res: Response) => Promise<void>,
): RequestHandler {
  const rules: UploadOptions = { ...kind, config, accepts, acceptsWatermark: true };
  return async (req, res) => {
    const image = imageBodyOf(req, rules, names);
    const { accept } = req.headers;
    const imageOptions = image && parse(image.options, accept); // rejects wrong parameters before the upload
    // Another body gets NOT_MULTIPART.
    if (!image && req.is('multipart/form-data')) {
      const misplaced = [...FILE_PARTS, ...names].find((name) => queryOf(req).has(name));
      if (misplaced !== undefined) throw serviceError('FIELD_IN_QUERY', misplaced);
    }
    await receiveBody({ req, res, workspaces, rules, image }, (body) => {
      const notes: Note[] = hasUnknown(body.fields, names) ? ['unknown-fields-ignored'] : [];
      return respond({ ...body, options: imageOptions ?? parse(body.fields, accept), notes }, res);
    });
  };
}

/** Returns whether a form has a text field that is not empty, and whose name is unknown. */
const hasUnknown = (fields: readonly TextField[], names: readonly string[]): boolean =>
  fields.some(([name, value]) => value !== '' && !names.includes(name));
