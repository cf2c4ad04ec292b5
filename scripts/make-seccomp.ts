/**
 * Makes the filters in `assets/seccomp/`: `node scripts/make-seccomp.ts`. What they allow is in `scripts/seccomp/`:
 * `allow-list.ts` has the calls that the tools were seen to make, `deny-list.ts` what no tool may do, for systems whose
 * tools make other calls.
 *
 * Under either a tool opens no socket, starts no process, signals none and changes none. So abort(3), which signals the
 * process itself, ends by an instruction, or with status 127 where a handler of ImageMagick aborts once more.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { ALLOW_LIST } from './seccomp/allow-list.ts';
import { ARCHITECTURES, type Architecture, compile, encode } from './seccomp/compile.ts';
import { DENY_LIST } from './seccomp/deny-list.ts';

const FOLDER = new URL('../assets/seccomp/', import.meta.url);
mkdirSync(FOLDER, { recursive: true });
for (const [name, filter] of Object.entries({ 'allow-list': ALLOW_LIST, 'deny-list': DENY_LIST })) {
  for (const architecture of Object.keys(ARCHITECTURES) as Architecture[]) {
    writeFileSync(new URL(`${name}.${architecture}.bpf`, FOLDER), encode(compile(filter, architecture)));
  }
}
