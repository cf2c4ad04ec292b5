/**
 * @module Generates the seccomp filters in `assets/seccomp/`: `node scripts/make-seccomp.ts`. The rules are in
 * `scripts/seccomp/`: `allow-list.ts` has the system calls that the tools were recorded to make; `deny-list.ts` has the
 * calls that no tool may make, for systems whose tools make other calls.
 *
 * Under either filter, a tool cannot open sockets, start processes, send signals or change other processes. abort(3)
 * signals the process itself, so it ends with an illegal instruction instead, or with status 127 if an ImageMagick
 * signal handler aborts again.
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
