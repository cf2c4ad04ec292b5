import type { Case } from '../matrix.ts';

/** What converts: the mill of this process, or a server somewhere. */

export interface Image {
  /** Its path below the folder of images, with slashes. */
  readonly name: string;
  readonly path: string;
}

interface Made {
  readonly bytes: Buffer;
  /** What the tools took, without waiting. */
  readonly ms: number;
  readonly notes: readonly string[];
}

/** Why there is no result: a status as the service has it, and its sentence. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

export type Attempt = ({ readonly made: Made } | { readonly refused: Refusal }) & {
  /** What one could paste into a shell to do the same, a line each. */
  readonly commands: readonly string[];
};

export interface Backend {
  /** Who converts, by name: versions of tools, or the address of a server. */
  readonly tools: Readonly<Record<string, string>>;
  /** How many conversions it does at once. */
  readonly concurrency: number;
  /** @throws the signal's reason when it fires meanwhile */
  convert(image: Image, how: Case, signal: AbortSignal): Promise<Attempt>;
  close(): Promise<void>;
}

/** There is nothing to convert with; the message says what and why. */
export class BackendError extends Error {
  override readonly name = 'NoConverter';
}
