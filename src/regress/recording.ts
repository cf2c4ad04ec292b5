import type { OutputType } from '../formats.ts';
import type { Refusal } from './backends/backend.ts';
import type { ImageMetadata } from './image/image.ts';
import type { Matrix } from './matrix.ts';

/** What became of every image in every case, with pictures or with figures instead of them. */

export interface Recording {
  /** Who converted: versions of tools, or the address of a server. */
  readonly tools: Readonly<Record<string, string>>;
  /** When, as ISO 8601 has it; a baseline of figures has no time, so that it changes only when something does. */
  readonly at?: string | undefined;
  readonly matrix: Matrix;
  readonly rows: readonly Row[];
  /** The result of a row; undefined when it was not kept. */
  open(row: Row): Promise<Buffer> | undefined;
}

/** One image in one case. */
export interface Row {
  readonly image: string;
  readonly case: string;
  readonly format: OutputType;
  /** Digest of the image itself: 128 bits of SHA-256, as of the results. */
  readonly input: string;
  readonly commands: readonly string[];
  readonly result?: Result | undefined;
  readonly refused?: Refusal | undefined;
}

export interface Result {
  readonly bytes: number;
  /** Undefined in a baseline of figures where a file holds the time when it was made. */
  readonly digest?: string | undefined;
  /** What the conversion took, the median when there were several. */
  readonly ms?: number | undefined;
  readonly notes: readonly string[];
  readonly figures?: Figures | undefined;
}

export interface Figures {
  readonly facts: ImageMetadata;
  /** Digest of the decoded pixels. */
  readonly pixels: string;
  /** See picture/fingerprint.ts. */
  readonly fingerprints: readonly string[];
}

export const keyOf = ({ image, case: name }: Pick<Row, 'image' | 'case'>): string => `${image}\0${name}`;
