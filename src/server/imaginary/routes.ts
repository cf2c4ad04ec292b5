/** @module The interface of imaginary (https://github.com/h2non/imaginary), as for Nextcloud. */
import { hash, timingSafeEqual } from 'node:crypto';
import { copyFile, rename, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import express, { type Request, type RequestHandler, type Response, type Router } from 'express';
import type { Logger } from 'pino';
import type { ConversionInput, ConversionResult } from '../../conversion/context.ts';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import { createOptionsParser, type FormSchemas } from '../../conversion/request/forms.ts';
import type { Config } from '../../tables/config.ts';
import {
  argsOf,
  ClientDisconnectedError,
  isFileError,
  type ServiceError,
  serviceError,
} from '../../tables/errors.ts';
import { INPUTS, type InputType, type OutputType } from '../../tables/formats.ts';
import { changeClient, clientOf } from '../clients.ts';
import { API_PREFIX } from '../http/head.ts';
import { endpoint, isBelow, setLogFields } from '../middleware.ts';
import type { ReceivedFile, UploadOptions } from '../receive/file-collector.ts';
import { queryOf, type ReceivedBody, receiveBody } from '../receive/upload.ts';
import { type DescribeError, describeError, errorHandler, notFound } from '../respond/error-handler.ts';
import { sendResult, setServerTiming } from '../respond/response.ts';
import { OPERATION_NAMES, type OperationCall } from './edit-operations.ts';
import { toWatermarkFile } from './overlays.ts';
import { parsePipeline, toPasses } from './pipeline.ts';

/** The version of imaginary whose requests are understood. Callers check that there is one. */
const IMAGINARY_VERSION = '1.2.4';

interface Deps extends Pick<ConversionEngine, 'capabilities' | 'convert' | 'identify' | 'workspaces'> {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  readonly forms: FormSchemas;
}

type Query = Readonly<Record<string, string>>;

/** Paths of the interface besides its index. */
const PATHS = ['/health', '/info', '/pipeline', ...OPERATION_NAMES.map((name) => `/${name}`)];

/**
 * Returns the routes that belong to the interface alone: all paths below `IMAGINARY_PATH`. At the
 * root, only its own paths, and the page has the same path as the index.
 */
export const imaginaryRoutes = (path: string | undefined): readonly string[] =>
  path === '/' ? PATHS : path ? [`${path}/`] : [];

/** For the interface at the root: leaves other paths to their routes, and browsers to the page. */
const leaveToPages: RequestHandler = (req, res, next) => {
  if (PATHS.includes(req.path)) return next();
  const isIndex = req.path === '/' && ['GET', 'HEAD'].includes(req.method);
  if (isIndex) res.vary('Accept');
  next(isIndex && !/\btext\/html\b/i.test(req.get('accept') ?? '') ? undefined : 'router');
};

/** Creates the routes below `IMAGINARY_PATH`, after `reject` for a shutdown and the rate limit. */
export function imaginaryRouter(deps: Deps, reject: RequestHandler, limit: RequestHandler): Router {
  const { config, version, log } = deps;
  const router = express.Router({ caseSensitive: true, strict: true });
  if (config.IMAGINARY_PATH === '/') router.use(leaveToPages);
  router.use(reject, checkKey(config.IMAGINARY_KEY), limit, (req, _res, next) => next(clientOf(req).error));
  endpoint(router, 'GET', '/', (_req, res) => {
    res.setHeader('Cache-Control', 'no-store'); // the page can have the same address
    res.json({ imaginary: IMAGINARY_VERSION, imagemill: version });
  });
  endpoint(router, 'GET', '/health', (_req, res) => {
    const allocatedMemory = process.memoryUsage().heapUsed / 1024 ** 2;
    res.json({ uptime: Math.floor(process.uptime()), allocatedMemory, cpus: availableParallelism() });
  });
  endpoint(router, 'POST', '/info', infoRoute(deps));
  const convertRoute = createConvertRoute(deps);
  const pipeline = convertRoute(({ operations = '' }) => parsePipeline(operations));
  endpoint(router, 'POST', '/pipeline', pipeline);
  for (const operation of OPERATION_NAMES) {
    const convert = convertRoute((params) => [{ operation, params }]);
    endpoint(router, 'POST', `/${operation}`, convert);
  }
  router.use(notFound);
  router.use(errorHandler(log, config.SUPPORT_EMAIL, describeAsImaginary));
  return router;
}

/** The format of imaginary's errors. */
const describeAsImaginary: DescribeError = ({ message, status }) => ['json', { message, status }];

/**
 * Describes an error outside of the interface. If that is at the root, unknown paths belong to it,
 * except those of the API.
 */
export const describeOutside =
  (path: string | undefined): DescribeError =>
  (error, req, res) => {
    const isUnknown =
      path === '/' && error.code === 'NOT_FOUND' && !isBelow(`${API_PREFIX}/`, `${req.path}/`);
    return (isUnknown ? describeAsImaginary : describeError)(error, req, res);
  };

const paramsOf = (req: Request): Query => Object.fromEntries(queryOf(req));

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Creates middleware: the right key exempts from the rate limit, and a wrong one is marked. */
function checkKey(key: string | undefined): RequestHandler {
  return (req, _res, next) => {
    if (key === undefined) return next();
    try {
      const given = paramsOf(req).key ?? req.get('api-key') ?? '';
      if (!timingSafeEqual(sha256(given), sha256(key))) throw serviceError('API_KEY_INVALID');
      changeClient(req, { perMinute: 0, error: undefined });
    } catch (error) {
      changeClient(req, { error: error as ServiceError }); // it counts
    }
    next();
  };
}

/** Names of colour spaces and types in libvips, where they differ from those of this service. */
const SPACES = { rgb: 'srgb', grey: 'b-w', cmyk: 'cmyk', lab: 'lab' };
const TYPES: Readonly<Partial<Record<InputType, string>>> = { jpg: 'jpeg', heic: 'heif' };
const CHANNELS = { rgb: 3, grey: 1, cmyk: 4, lab: 3 };

/** Creates the handler of `/info`. Results are always upright, and so are these sizes. */
function infoRoute(deps: Deps): RequestHandler {
  return (req, res) =>
    receive(req, res, deps, false, async (file, { signal }) => {
      setLogFields(res, { input: file.type, files: 1 });
      const image = await deps.identify(file, {}, signal);
      const { type, width, height, alpha, profile, problem } = image;
      const space = image.colour_space ?? 'rgb';
      if (width === null || problem?.code === 400)
        throw serviceError('CORRUPT_IMAGE', file.label, INPUTS[type].label);
      res.json({
        width,
        height,
        type: TYPES[type] ?? type,
        space: SPACES[space],
        hasAlpha: alpha === true,
        hasProfile: profile !== null,
        channels: CHANNELS[space] + (alpha ? 1 : 0),
        orientation: 1,
      });
    });
}

/** Parameters with another name than the field of the API. */
const PARAMETERS: Readonly<Record<string, string>> = { output_format: 'type', blur: 'sigma' };

/** Formats of results without a type, for inputs that are no output here. bimg writes JPEG. */
const SIMILAR: Readonly<Partial<Record<InputType, OutputType>>> = { svg: 'png', ico: 'png', cur: 'png' };

/** Returns a function that creates the handler for the operations that `read` finds in a query. */
function createConvertRoute(
  deps: Deps,
): (read: (query: Query) => readonly OperationCall[]) => RequestHandler {
  const { convert, capabilities } = deps;
  const { outputs } = capabilities;
  const parse = createOptionsParser(outputs, deps.forms);
  const parseNamed: typeof parse = (fields, accept) => {
    try {
      return parse(fields, accept);
    } catch (error) {
      const args = argsOf(error, 'FIELD_INVALID');
      if (!args) throw error;
      const [field, value, expected] = args;
      throw serviceError('FIELD_INVALID', PARAMETERS[field] ?? field, value, expected);
    }
  };
  const sameFormat = (type: InputType): OutputType =>
    outputs.find((output) => output === type) ?? SIMILAR[type] ?? 'jpg';
  return (read) => async (req, res) => {
    // Rejects wrong parameters before the upload.
    const passes = toPasses(read(paramsOf(req))).map(({ fields, ...others }) => ({
      ...others,
      options: parseNamed(fields, req.get('accept')),
      hasType: fields.some(([name]) => name === 'output_format'),
    }));
    if (passes.some(({ options }) => options.accepted)) res.vary('Accept');
    const acceptsWatermark = passes.some((pass) => pass.watermark && pass.watermark.svg === undefined);
    await receive(req, res, deps, acceptsWatermark, async (file, upload) => {
      const { signal, uploadedMs, disk, workspace } = upload;
      setLogFields(res, { input: file.type, files: 1 });
      const results: ConversionResult[] = [];
      const timeUsed = { ms: 0 };
      let source: ConversionInput = { ...file, timeUsed };
      for (const [at, { options, hasType, isOptional, watermark: wanted }] of passes.entries()) {
        const requested = hasType ? options : { ...options, format: sameFormat(file.type) };
        const makeFolder = (name: string) => workspace.folder(`${name}-${at}`);
        const spare = isOptional ? await copyInput(source, await makeFolder('spare')) : undefined;
        try {
          const watermark =
            wanted && (await toWatermarkFile(wanted, upload.watermark, await makeFolder('watermark')));
          const result = await convert({ ...source, watermark }, requested, signal);
          results.push(result);
          const isLast = at === passes.length - 1;
          if (!isLast) source = await toInput(result, source, await makeFolder('pass'));
        } catch (error) {
          if (!spare || !isFileError(error)) throw error;
          source = spare;
        }
      }
      const result = results.at(-1) as ConversionResult;
      setLogFields(res, { output: result.format });
      if (signal.aborted) throw new ClientDisconnectedError();
      setServerTiming(res, { ...sumOfTimes(results), convertedMs: timeUsed.ms, uploadedMs });
      if (result.width)
        res.set({ 'Image-Width': String(result.width), 'Image-Height': String(result.height) });
      await sendResult(res, result, file.name, disk);
    });
  };
}

/** Copies an input to another folder, because a conversion removes its input. */
async function copyInput(source: ConversionInput, folder: string): Promise<ConversionInput> {
  const path = join(source.folder, INPUT_FILE);
  await source.disk?.store((await stat(path)).size);
  await copyFile(path, join(folder, INPUT_FILE));
  return { ...source, folder };
}

/** Makes a result, a PNG, the input of another conversion. */
async function toInput(
  { path }: ConversionResult,
  { sha256: _, ...source }: ConversionInput,
  folder: string,
): Promise<ConversionInput> {
  await rename(path, join(folder, INPUT_FILE));
  return { ...source, folder, type: 'png' };
}

/** Returns the times before several conversions together. */
function sumOfTimes(results: readonly ConversionResult[]) {
  const sum = (name: 'queuedMs' | 'preparedMs'): number =>
    results.reduce((total, result) => total + result[name], 0);
  return { queuedMs: sum('queuedMs'), preparedMs: sum('preparedMs') };
}

/**
 * Receives the image of a request, lets `respond` send the result, and deletes all files. The image
 * is the whole body, of any media type, or a file of a form.
 *
 * @param acceptsWatermark whether a form can have another image
 */
async function receive(
  req: Request,
  res: Response,
  { config, capabilities, workspaces }: Deps,
  acceptsWatermark: boolean,
  respond: (file: ReceivedFile & Pick<ReceivedBody, 'client' | 'disk'>, body: ReceivedBody) => Promise<void>,
): Promise<void> {
  const rules: UploadOptions = {
    config,
    accepts: capabilities.inputs,
    maxFiles: 1,
    isBatch: false,
    acceptsImage: true,
    acceptsWatermark,
    fileField: paramsOf(req).field || 'file',
  };
  const isForm = /^multipart\/form-data\b/i.test(req.get('content-type') ?? '');
  const image = isForm ? undefined : { name: undefined, options: [], isDeclared: true };
  await receiveBody({ req, res, workspaces, rules, image }, (body) => {
    const { files, client, disk } = body;
    return respond({ ...(files[0] as ReceivedFile), client, disk }, body);
  });
}
