import type { Config } from '../../config.ts';
import type { InputType, OutputType } from '../../formats.ts';

/** What the reference must know of the service that it describes. */
export interface ApiContext {
  readonly version: string;
  /** What this machine can read and write. */
  readonly inputs: readonly InputType[];
  readonly outputs: readonly OutputType[];
  readonly config: Pick<
    Config,
    | 'CONVERT_TIMEOUT_MS'
    | 'CORS_ORIGIN'
    | 'MAX_BATCH_FILES'
    | 'MAX_FILE_BYTES'
    | 'MAX_FRAMES'
    | 'MAX_PIXELS'
    | 'MAX_TOTAL_PIXELS'
    | 'RATE_LIMIT_PER_MINUTE'
    | 'SUPPORT_EMAIL'
    | 'UPLOAD_TIMEOUT_MS'
  >;
}

/** A piece of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** A request id for examples. */
export const EXAMPLE_ID = '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21';
