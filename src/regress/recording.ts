/** @module Types of recorded results. */
import type { OutputType } from '../formats.ts';
import type { Refusal } from './backends/backend.ts';
import type { ImageMetadata } from './image/image.ts';
import type { Matrix } from './matrix.ts';

/** Results of every image in every case, with the result files or with fingerprints. */
export interface Recording {
  /** Versions of the tools, or the address and version of a server. */
  readonly tools: Readonly<Record<string, string>>;
  /** Time in ISO 8601. Undefined for a baseline of fingerprints, so that its file changes only if a result does. */
  readonly at?: string | undefined;
  readonly matrix: Matrix;
  readonly rows: readonly Row[];
  /**
   * Reads the result file of a row; undefined if it was not kept.
   *
   * @throws {AlteredResultError}
   */
  open(row: Row): Promise<Buffer> | undefined;
}

/** The result file of a row is not the recorded one any more. */
export class AlteredResultError extends Error {
  override readonly name = 'AlteredResultError';
}

/** Result of one image in one case. */
export interface Row {
  readonly image: string;
  readonly case: string;
  readonly format: OutputType;
  /** Digest of the input image: the first 128 bits of SHA-256, in hex. */
  readonly input: string;
  readonly commands: readonly string[];
  readonly result?: Result | undefined;
  readonly refused?: Refusal | undefined;
  /** Digest of the pixels that the tools decode from a kind of file that is rejected because they misread it. */
  readonly misread?: string | undefined;
}

/** A successful conversion. */
export interface Result {
  /** File size in bytes. */
  readonly bytes: number;
  /** Digest of the file. Undefined in a baseline of fingerprints for formats that contain their creation time. */
  readonly digest?: string | undefined;
  /** Conversion time in ms, the median if repeated. */
  readonly ms?: number | undefined;
  readonly notes: readonly string[];
  readonly figures?: ResultFingerprint | undefined;
}

/** What a baseline of fingerprints keeps of a result. */
export interface ResultFingerprint {
  readonly facts: ImageMetadata;
  /** Digest of the decoded pixels: the first 128 bits of SHA-256, in hex. */
  readonly pixels: string;
  /** Base64, one per frame; see image/fingerprint.ts. */
  readonly fingerprints: readonly string[];
}

/** Returns the key by which rows of two recordings are matched. */
export const rowKey = ({ image, case: name }: Pick<Row, 'image' | 'case'>): string => `${image}\0${name}`;
