/** @module Writes policies for ImageMagick that permit more coders than those in assets/. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A coder by its canonical name, with all its rights. */
export interface Grant {
  readonly coder: string;
  readonly rights: 'read' | 'write' | 'read|write';
}

/** Last line of a policy. */
const END = '</policymap>';

/**
 * Copies the policy in `from` to `to`, and adds rights at its end, since the last matching rule applies. ImageMagick reads
 * both policies, so if the copy is missing, the original still denies everything else.
 *
 * @param from the folder that contains `ImageMagick/policy.xml`
 * @param to the folder to create
 */
export async function writePolicy(from: string, to: string, grants: readonly Grant[]): Promise<void> {
  const policy = await readFile(join(from, 'ImageMagick/policy.xml'), 'utf8');
  if (!policy.includes(END)) throw new Error(`the policy in ${from} does not end with ${END}`);
  // A module has the name of its coder. Version 6 does not load a module that is only readable.
  const rules = grants.flatMap(({ coder, rights }) => [
    `  <policy domain="module" rights="read|write" pattern="${coder}"/>\n`,
    `  <policy domain="coder" rights="${rights}" pattern="${coder}"/>\n`,
  ]);
  await mkdir(join(to, 'ImageMagick'), { recursive: true });
  await writeFile(join(to, 'ImageMagick/policy.xml'), policy.replace(END, rules.join('') + END));
}
