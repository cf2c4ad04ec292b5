/** Arguments that need no quotes in a POSIX shell. */
const UNQUOTED = /^[\w@%+=:,./-]+$/;

/** Formats arguments as a command line for a POSIX shell. */
export function shellWords(args: readonly string[]): string {
  return args.map((arg) => (UNQUOTED.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`)).join(' ');
}
