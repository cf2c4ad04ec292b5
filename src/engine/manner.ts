/**
 * How ImageMagick is started before there is work for it, and how it is told of the work then: both versions can read
 * their arguments from standard input. Version 7 does one job after another, version 6 ends with the first.
 */
export interface Manner {
  readonly args: readonly string[];
  /** Whether the process ends with its job. Otherwise it says {@link DONE}, once before the first and after each. */
  readonly once: boolean;
  /** What it is told at its start. */
  readonly greeting: string;
  /** @param args of one command, the last of them its output */
  tell(args: readonly string[]): string;
}

/** The last that is printed of each job. Pictures can print something of themselves only to standard error. */
export const DONE = 'imagemill: done\n';
const SAY_DONE = `-print '${DONE.replace('\n', '\\n')}'\n`;

export const MANNERS: Readonly<Record<6 | 7, Manner>> = {
  // utility.c, ExpandFilenames(): the arguments of a file, up to its end, stand in the place of its name. The first
  // must be none that has a value, or the name is not taken away.
  6: {
    args: ['-respect-parentheses', '@-'],
    once: true,
    greeting: '',
    tell: (args) => ['-respect-parentheses', ...args.map(quote)].join('\n'),
  },
  7: {
    args: ['-script', '-'],
    once: false,
    // Whatever is set within parentheses is forgotten behind them.
    greeting: `-respect-parentheses ${SAY_DONE}`,
    tell(args) {
      const words = [...args.slice(0, -1), '-write', args.at(-1) as string].map(quote);
      return `(\n${words.join('\n')}\n+delete\n)\n${SAY_DONE}`;
    },
  },
};

/** Between single quotes nothing has a meaning, in both versions; but in 6 a backslash keeps the second from ending it. */
function quote(word: string): string {
  if (/['\n\0]|\\$/.test(word)) throw new Error(`an argument that cannot be told: ${word}`);
  return `'${word}'`;
}
