/** @module Converts by sending files to running instances. */
import { createWriteStream } from 'node:fs';
import { stat, statfs, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ImagemillError } from '../../client/library/index.ts';
import {
  type Busy,
  createServiceClient,
  ResultTooLargeError,
  type ServiceClient,
  UnavailableError,
} from '../../client/service-client.ts';
import { Workspaces } from '../../files/workspace.ts';
import type { Config } from '../../tables/config.ts';
import { KnownResultError } from '../../tables/errors.ts';
import { CliError } from '../context.ts';
import { type Converter, FileError, labelOf, readUnchanged, STDIN, StopError, stateOf } from './converter.ts';

/** Maximum size of a result in bytes: that of a BMP of 500 megapixels. */
const MAX_RESULT_BYTES = 2 * 1024 ** 3;

/** Maximum number of failed connections per file: about two minutes with their delays. */
const MAX_FAILURES = 10;

export interface RemoteOptions {
  readonly config: Pick<Config, 'IMAGEMILL_API_KEY' | 'TEMP_DIR'>;
  readonly urls: readonly string[];
  readonly fields: readonly (readonly [string, string])[];
  readonly watermark?: string | undefined;
  /** Prints something that is no error. */
  readonly notice: (text: string) => void;
  readonly signal: AbortSignal;
}

/** @throws {CliError} if no instance responds */
export async function createRemoteConverter(options: RemoteOptions): Promise<Converter> {
  const { config, urls, fields, watermark, notice, signal } = options;
  const onBusy = createBusyNotice(notice);
  const service = { maxFailures: MAX_FAILURES, key: config.IMAGEMILL_API_KEY, onBusy };
  const client = await createServiceClient(urls, service).catch((error) => {
    throw error instanceof UnavailableError ? new CliError(error.message) : error;
  });
  const workspaces = new Workspaces(config.TEMP_DIR);
  const versions = new Set(client.instances.map(({ version }) => version));
  return {
    toolVersions: `imagemill ${[...versions].sort().join(', ')}`,
    async convert({ input, options }, use, known) {
      const before = await stateOf(input);
      await workspaces.use({}, async ({ path: folder }) => {
        const source = input === STDIN ? join(folder, 'in') : input;
        if (input === STDIN) await pipeline(process.stdin, createWriteStream(source), { signal });
        const path = join(folder, 'result');
        const name = input === STDIN ? 'stdin' : basename(input);
        // Each of several pages is a result, and a request.
        const own = fields.map(
          ([field, value]) => [field, (field === 'pages' && options.pages) || value] as const,
        );
        const request = { path: source, name, fields: own, watermark, known };
        const { bavail, bsize } = await statfs(folder);
        const maxBytes = Math.min(MAX_RESULT_BYTES, Math.floor((bavail * bsize) / 2));
        const receive = (response: Response) => saveResult(response, path, maxBytes, signal);
        const send = () => client.convert(request, receive, signal);
        const result = await readUnchanged(input, before, send).catch((error) =>
          throwFileError(error, known, input, client),
        );
        const [{ size: bytesBefore }, { size: bytesAfter }] = [await stat(source), await stat(path)];
        const { key, ms, notes, removed, kept, quality, width, height } = result;
        const described = { key, ms, notes, removed, kept, quality, width, height };
        await use({ path, sourceState: before, bytesBefore, bytesAfter, ...described });
      });
    },
    close: () => workspaces.close(),
  };
}

/** @throws {ResultTooLargeError} if the body has more than `maxBytes`; the file has no more */
async function saveResult(
  { body }: Response,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<void> {
  async function* limit() {
    let bytes = 0;
    for await (const chunk of body ?? []) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new ResultTooLargeError(`The result has more than ${maxBytes} bytes.`);
      yield chunk;
    }
  }
  await writeFile(path, limit(), { signal });
}

/** Returns a function that explains a pause, once for each instance and status. */
function createBusyNotice(notice: RemoteOptions['notice']): (busy: Busy) => void {
  const explained = new Set<string>();
  return ({ base, status, waitS }) => {
    const key = `${base} ${status}`;
    if (waitS === 0 || explained.has(key)) return;
    explained.add(key);
    const why = status === 429 ? 'A limit on requests of one client is reached' : 'It is busy';
    notice(`${base} responded with ${status}. ${why}, and it gets no files for ${waitS} s.`);
  };
}

/**
 * Throws an error of the file if any instance responds, otherwise {@link StopError}: no other file
 * can succeed either.
 *
 * @throws {KnownResultError} if the result exists
 */
async function throwFileError(
  error: unknown,
  known: string | undefined,
  input: string,
  client: ServiceClient,
): Promise<never> {
  if (error instanceof ImagemillError) {
    if (error.status === 304 && known !== undefined) throw new KnownResultError(known);
    const { status, message, reason } = error;
    throw new FileError(reason?.toUpperCase() ?? `HTTP_${status}`, `${labelOf(input)}: ${message}`);
  }
  if (error instanceof ResultTooLargeError)
    throw new FileError('RESULT_TOO_LARGE', `${labelOf(input)}: ${error.message}`);
  if (!(error instanceof UnavailableError)) throw error;
  if (await client.isAlive()) throw new FileError('SERVER_FAILED', `${input}: ${error.message}.`);
  throw new StopError(`${error.message}.`);
}
