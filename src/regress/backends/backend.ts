/** @module The interface of the backends that convert images for a recording. */
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
