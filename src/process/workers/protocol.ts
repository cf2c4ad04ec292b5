import { randomUUID } from 'node:crypto';

/**
 * How ImageMagick is started before there is work for it, and how it is told of the work then: both versions can read
 * their arguments from standard input. Version 7 does one job after another, version 6 ends with the first.
 */
export interface WorkerProtocol {
  readonly args: readonly string[];
  /** Whether the process ends with its job. Otherwise it prints the marker, once before the first job and after each. */
  readonly singleUse: boolean;
  /** What it is told at its start. */
  handshake(marker: string): string;
  /** @param args of one command, the last of them its output */
  encodeJob(args: readonly string[], marker: string): string;
}

const print = (marker: string): string => `-print '${marker.replace('\n', '\\n')}'\n`;

export const WORKER_PROTOCOLS: Readonly<Record<6 | 7, WorkerProtocol>> = {
  // utility.c, ExpandFilenames(): the arguments of a file, up to its end, stand in the place of its name. The first
  // must be none that has a value, or the name is not taken away.
  6: {
    args: ['-respect-parentheses', '@-'],
    singleUse: true,
    handshake: () => '',
    encodeJob: (args) => ['-respect-parentheses', ...args.map(quote)].join('\n'),
  },
  7: {
    args: ['-script', '-'],
    singleUse: false,
    // Whatever is set within parentheses is forgotten behind them.
    handshake: (marker) => `-respect-parentheses ${print(marker)}`,
    encodeJob(args, marker) {
      const words = [...args.slice(0, -1), '-write', args.at(-1) as string].map(quote);
      return `(\n${words.join('\n')}\n+delete\n)\n${print(marker)}`;
    },
  },
};

/**
 * Makes what a worker prints last of each job. It is random, so that neither a picture nor a message that quotes one can
 * contain it. It does not hold against a codec that runs foreign code: the process has to know the marker, so that code can
 * find it. All that such code gains is that its own job counts as done too early, and the result is checked all the same.
 */
export const createMarker = (): string => `imagemill: done ${randomUUID()}\n`;

/** Between single quotes nothing has a meaning, in both versions; but in 6 a backslash keeps the second from ending it. */
function quote(word: string): string {
  if (/['\n\0]|\\$/.test(word)) throw new Error(`an argument that cannot be told: ${word}`);
  return `'${word}'`;
}
