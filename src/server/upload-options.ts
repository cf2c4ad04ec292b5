/** @module The limits of an upload, and the files that it has stored. */
import type { Config } from '../config.ts';
import type { TextField } from '../conversion/types.ts';
import type { BatchFile, ServiceError } from '../errors.ts';
import type { InputType } from '../formats.ts';

/** Limits and field names of an upload. */
export interface UploadOptions {
  readonly config: Config;
  readonly maxFiles: number;
  readonly accepts: readonly InputType[];
  /**
   * Whether the request can have several files. Then ZIP archives are unpacked, so that their files count as files of the
   * request.
   */
  readonly isBatch: boolean;
  /** Whether the body can be an image instead of a form. */
  readonly acceptsImage: boolean;
  /** Required name of file parts. In a batch, an index in brackets may follow, as PHP and axios send it. */
  readonly fileField: string;
  /** Another name of the file part, for a request with a single file. */
  readonly singleField?: string;
  /** Time over which the rate of the upload is averaged, in milliseconds. Default: {@link RATE_WINDOW_MS}. */
  readonly rateWindowMs?: number;
  /** Returns whether to skip an invalid file, by the text fields in front of it. */
  readonly skipInvalid: (fields: readonly TextField[]) => boolean;
}

/** A file that was stored in the workspace. */
export interface ReceivedFile {
  /** The file name that the client sent: any text. */
  readonly name: string | undefined;
  readonly label: string;
  /** Its place in the batch, if the request is one. */
  readonly batchFile: BatchFile | undefined;
  readonly type: InputType;
  readonly folder: string;
}

/** An invalid file that was skipped. */
export interface RejectedFile {
  readonly name: string | undefined;
  readonly error: ServiceError;
}
