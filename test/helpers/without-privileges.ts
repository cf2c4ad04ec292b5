import { spawnSync } from 'node:child_process';

/**
 * Runs a module in a process without capabilities, so that file permissions apply even to root.
 *
 * @returns its standard output
 * @throws {Error} with its standard error if it fails
 */
export function withoutPrivileges(code: string): string {
  const setpriv = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];
  const args = [
    ...(process.getuid?.() === 0 ? setpriv : []),
    process.execPath,
    '--input-type=module',
    '-e',
    code,
  ];
  const { status, stdout, stderr } = spawnSync(args[0] as string, args.slice(1), { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
