/** @module Properties of the service that the API reference depends on. */
import type { Config } from '../../config.ts';
import type { InputType, OutputType } from '../../formats.ts';

/** The service that the reference describes. */
export interface ApiContext {
  readonly version: string;
  /** Formats that this machine can read. */
  readonly inputs: readonly InputType[];
  /** Formats that this machine can write. */
  readonly outputs: readonly OutputType[];
  readonly config: Config;
}

/** A part of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** Request ID in examples. */
export const EXAMPLE_ID = '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21';
