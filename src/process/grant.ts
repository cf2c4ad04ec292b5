import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Policies for ImageMagick that grant more than those in assets/, for the coders that an operator switches on. */

/** A coder by its canonical name, and what it may do in all. */
export interface Grant {
  readonly coder: string;
  readonly rights: 'read' | 'write' | 'read|write';
}

/** The line behind which nothing follows. */
const END = '</policymap>';

/**
 * Writes the policy of `from` into `to`, with more rights at its end, where the last match wins. Should the new file go
 * missing, the one of `from`, which ImageMagick reads as well, still denies everything else.
 *
 * @param from a folder that holds `ImageMagick/policy.xml`
 * @param to a folder that is made
 */
export async function writePolicy(from: string, to: string, grants: readonly Grant[]): Promise<void> {
  const policy = await readFile(join(from, 'ImageMagick/policy.xml'), 'utf8');
  if (!policy.includes(END)) throw new Error(`the policy in ${from} does not end as expected`);
  // A module has the name of its coder, and version 6 loads none that may only read.
  const rules = grants.flatMap(({ coder, rights }) => [
    `  <policy domain="module" rights="read|write" pattern="${coder}"/>\n`,
    `  <policy domain="coder" rights="${rights}" pattern="${coder}"/>\n`,
  ]);
  await mkdir(join(to, 'ImageMagick'), { recursive: true });
  await writeFile(join(to, 'ImageMagick/policy.xml'), policy.replace(END, rules.join('') + END));
}
