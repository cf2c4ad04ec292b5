/** @module A file on disk as a part of a form, which is read while it is sent. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/**
 * A file of a form. In contrast to the Blob of `openAsBlob`, its stream never fails: it ends early, and reports the error. If a
 * stream of a form fails, `fetch` of Node.js 24 does not settle, and the error is an unhandled rejection.
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
    let missing = this.size;
    if (missing === 0) return;
    try {
      for await (const chunk of createReadStream(this.#path, { end: missing - 1 })) {
        missing -= chunk.length;
        yield chunk;
      }
      if (missing > 0) throw new TruncatedFileError(`${this.#path} became shorter while it was read`);
    } catch (error) {
      this.#onError(error as Error);
    }
  }
}

/** A file became shorter while it was read. */
export class TruncatedFileError extends Error {
  override readonly name = 'TruncatedFileError';
}

/**
 * Opens a file for a form.
 *
 * @param name name of the file for the server
 * @param onError called with a {@link TruncatedFileError} or an error of the file system if the file cannot be read to its end.
 *   The caller must then abort the request.
 * @throws {Error} of the file system, if the file does not exist
 */
export async function streamFile(path: string, name: string, onError: (error: Error) => void): Promise<File> {
  const { size } = await stat(path);
  return new StreamedFile(path, name, size, onError);
}
