/** @module Sends forms with files of any size: the files are read from disk while they are sent. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/**
 * A file on disk. In contrast to the Blob of `openAsBlob`, its stream never fails: it ends early,
 * and reports the error, which `fetch` would report as an error of the connection.
 */
class StreamedFile extends File {
  readonly #path: string;
  readonly #onError: (error: Error) => void;

  constructor(path: string, name: string, size: number, onError: (error: Error) => void) {
    super([], name);
    this.#path = path;
    this.#onError = onError;
    Object.defineProperty(this, 'size', { value: size });
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return ReadableStream.from(this.#read());
  }

  /** Yields exactly as many bytes as the form has announced, unless the file has become shorter. */
  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let remaining = this.size;
    if (remaining === 0) return;
    try {
      for await (const chunk of createReadStream(this.#path, { end: remaining - 1 })) {
        remaining -= chunk.length;
        yield chunk;
      }
      if (remaining > 0) throw new TruncatedFileError(`${this.#path} became shorter while it was read`);
    } catch (error) {
      this.#onError(error as Error);
    }
  }
}

/** The file became shorter while it was read. */
export class TruncatedFileError extends Error {
  override readonly name = 'TruncatedFileError';
}

/**
 * Opens a file for a form.
 *
 * @param onError called with a {@link TruncatedFileError} or an error of the file system if the
 *   file cannot be read to its end. The caller must then abort the request.
 * @throws {Error} of the file system, if the file does not exist
 */
export async function streamFile(path: string, name: string, onError: (error: Error) => void): Promise<File> {
  const { size } = await stat(path);
  return new StreamedFile(path, name, size, onError);
}

/**
 * A form as a body of known size. `fetch` of Node.js 24 reads all parts of a `FormData` into memory
 * at once. If the connection closes and the request is aborted meanwhile, an unhandled error ends
 * the process. `fetch` reads a Blob only as fast as it sends it.
 */
class FormBody extends Blob {
  readonly #parts: readonly Blob[];

  constructor(form: FormData) {
    const boundary = `form-${randomUUID()}`;
    super([], { type: `multipart/form-data; boundary=${boundary}` });
    const parts = [...form].flatMap(([name, value]) => {
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"`;
      if (typeof value === 'string') return [`${head}\r\n\r\n`, value, '\r\n'];
      const about = `; filename="${escapeName(value.name)}"\r\nContent-Type: ${FILE_MEDIA_TYPE}`;
      return [`${head}${about}\r\n\r\n`, value, '\r\n'];
    });
    this.#parts = [...parts, `--${boundary}--\r\n`].map((part) =>
      typeof part === 'string' ? new Blob([part]) : part,
    );
    Object.defineProperty(this, 'size', { value: this.#parts.reduce((sum, { size }) => sum + size, 0) });
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return ReadableStream.from(this.#read());
  }

  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (const part of this.#parts) yield* part.stream();
  }
}

/** Media type of every file part: the server detects the type from the bytes. */
const FILE_MEDIA_TYPE = 'application/octet-stream';

/** Escapes the name of a field or file in a part's header as the HTML standard does. */
const escapeName = (name: string): string =>
  name.replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22');

/**
 * Sends a request like `fetch`, but reads the files of a form while it sends them. Unless `window`
 * is null and `redirect` is `error`, `fetch` keeps a copy of the body in memory, to send it again.
 */
export const fetchStreamed: typeof fetch = (url, init) =>
  init?.body instanceof FormData
    ? fetch(url, { ...init, body: new FormBody(init.body), window: null, redirect: 'error' })
    : fetch(url, init);
