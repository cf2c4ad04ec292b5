/** @module The interface of the backends that convert images for a recording, and the one of a server, to compare two versions. */
import { basename } from 'node:path';
import { ImagemillError } from '../../client/library/index.ts';
import {
  type ConversionRequest,
  createServiceClient,
  type ServiceClient,
  UnavailableError,
} from '../../client/service-client.ts';
import { OUTPUTS } from '../../formats.ts';
import { curlFileName, shellWords } from '../../text.ts';
import type { Case } from '../matrix.ts';

/** An input image. */
export interface Image {
  /** Path relative to the folder of images, with slashes. */
  readonly name: string;
  /** Path in the file system. */
  readonly path: string;
}

/** A successful conversion. */
interface ConvertedFile {
  readonly bytes: Buffer;
  /** Conversion time in ms, without the time in the queue. */
  readonly ms: number;
  readonly notes: readonly string[];
}

/** A failed conversion: HTTP status and message, as the service would respond. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/**
 * A failed conversion, and the result that the tools make of a kind of file that is rejected because they misread it.
 */
interface FailedConversion {
  readonly refused: Refusal;
  readonly misread?: Buffer | undefined;
}

/** Outcome of one conversion. */
export type Attempt = ({ readonly made: ConvertedFile } | FailedConversion) & {
  /** Shell commands that repeat the conversion, one per line. */
  readonly commands: readonly string[];
};

/** Converts images: the engine in this process, or a server. */
export interface Backend {
  /** Versions of the tools, or the address and version of a server, by name. */
  readonly tools: Readonly<Record<string, string>>;
  /** Maximum number of concurrent conversions. */
  readonly concurrency: number;
  /**
   * Converts an image.
   *
   * @throws {BackendError} if the backend is unavailable
   * @throws the signal's reason if it aborts
   */
  convert(image: Image, testCase: Case, signal: AbortSignal): Promise<Attempt>;
  /** Releases all resources. */
  close(): Promise<void>;
}

/** The backend is unavailable. The message names the backend and the cause. */
export class BackendError extends Error {
  override readonly name = 'BackendError';
}

const CONCURRENCY = 2;
/** A server that does not answer is not a result of the image, so the first failed connection ends the run. */
const MAX_FAILURES = 1;

/**
 * Creates a backend that sends images to a server.
 *
 * @param url URL of the server, with or without /api/v1
 * @param key API key of the requests
 * @throws {BackendError} if no imagemill server responds
 */
export async function createHttpBackend(url: string, key: string | undefined): Promise<Backend> {
  const client = await createServiceClient([url], { maxFailures: MAX_FAILURES, key }).catch(toBackendError);
  const [{ base, version }] = client.instances as [ServiceClient['instances'][number]];
  return {
    tools: { server: base, imagemill: version },
    concurrency: CONCURRENCY,
    convert: (image, testCase, signal) => sendImage(client, base, image, testCase, signal),
    async close() {},
  };
}

async function sendImage(
  client: ServiceClient,
  base: string,
  image: Image,
  testCase: Case,
  signal: AbortSignal,
): Promise<Attempt> {
  const commands = [curl(base, image, testCase)];
  const request: ConversionRequest = {
    path: image.path,
    name: basename(image.name),
    fields: testCase.fields,
  };
  const receive = async (response: Response) => Buffer.from(await response.arrayBuffer());
  try {
    const { received: bytes, ms, notes } = await client.convert(request, receive, signal);
    return { made: { bytes, ms, notes }, commands };
  } catch (error) {
    if (!(error instanceof ImagemillError)) return toBackendError(error);
    return { refused: { status: error.status, message: error.message }, commands };
  }
}

function toBackendError(error: unknown): never {
  throw error instanceof UnavailableError ? new BackendError(error.message, { cause: error }) : error;
}

/** Formats the curl command that repeats a conversion. */
function curl(base: string, { name }: Image, { name: caseName, fields, options }: Case): string {
  const form = [...fields.map(([field, value]) => `${field}=${value}`), `file=@${curlFileName(name)}`];
  const output = `${caseName}.${OUTPUTS[options.format].extension}`;
  return shellWords(['curl', ...form.flatMap((part) => ['-F', part]), `${base}/convert`, '-o', output]);
}
