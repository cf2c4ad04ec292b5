/**
 * @module Protocol between the service and a worker. Both versions of ImageMagick can read their arguments from standard
 * input, so that a process can start before its job is known. Version 7 runs one job after another, version 6 ends after
 * the first.
 */

import { randomUUID } from 'node:crypto';

/** Arguments and messages of a worker, for one version of ImageMagick. */
export interface WorkerProtocol {
  /** Arguments that start the worker. */
  readonly args: readonly string[];
  /** Whether the process ends after one job. Otherwise it prints the marker before its first job and after each job. */
  readonly singleUse: boolean;
  /** Returns the message that the worker receives at its start. */
  handshake(marker: string): string;
  /**
   * Returns the message that runs one job.
   *
   * @param args the arguments of the command. The last one is the output.
   * @throws {Error} for an argument that the protocol cannot encode
   */
  encodeJob(args: readonly string[], marker: string): string;
}

const print = (marker: string): string => `-print '${marker.replace('\n', '\\n')}'\n`;

/** Protocol of each major version of ImageMagick. */
export const WORKER_PROTOCOLS: Readonly<Record<6 | 7, WorkerProtocol>> = {
  // utility.c, ExpandFilenames(): ImageMagick replaces `@-` with the arguments that it reads up to the end of the input.
  // The option before it must not take a value, or ImageMagick keeps the name.
  6: {
    args: ['-respect-parentheses', '@-'],
    singleUse: true,
    handshake: () => '',
    encodeJob: (args) => ['-respect-parentheses', ...args.map(quote)].join('\n'),
  },
  7: {
    args: ['-script', '-'],
    singleUse: false,
    // Settings within parentheses do not apply after them.
    handshake: (marker) => `-respect-parentheses ${print(marker)}`,
    encodeJob(args, marker) {
      const quoted = [...args.slice(0, -1), '-write', args.at(-1) as string].map(quote);
      return `(\n${quoted.join('\n')}\n+delete\n)\n${print(marker)}`;
    },
  },
};

/**
 * Creates the marker that a worker prints after each job.
 *
 * The marker is random, so that neither an image nor a message that quotes one can contain it. It does not protect against
 * code that an attacker runs in a codec: the process has to know the marker, so that code can find it. Such code can only
 * make its own job count as done too early, and the service verifies every result.
 */
export const createMarker = (): string => `imagemill: done ${randomUUID()}\n`;

/**
 * Quotes an argument. Between single quotes, no character is special in either version, except that in version 6 a
 * backslash escapes the closing quote.
 *
 * @throws {Error} for an argument with a quote, a line feed or a NUL, or with a backslash at its end
 */
function quote(word: string): string {
  if (/['\n\0]|\\$/.test(word)) throw new Error(`argument cannot be encoded: ${word}`);
  return `'${word}'`;
}
