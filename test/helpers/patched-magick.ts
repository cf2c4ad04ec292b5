/** @module Runs ImageMagick with modified arguments, to test that regressions are found. */
import { createRunner } from '../../src/process/runner.ts';
import { findToolchain } from '../../src/process/toolchain.ts';
import { writeScript } from './util.ts';

/**
 * Writes a script that runs the installed ImageMagick with modified arguments, as a faulty change of a plan would.
 *
 * @param cases branches of a shell `case` on `$word`; `drop=1` also removes the next argument
 */
export async function patchedMagick(cases: string): Promise<string> {
  const { PATH = '', MAGICK_BIN } = process.env;
  const run = createRunner({ searchPath: PATH, policyFolder: '/nonexistent' });
  const { magick } = await findToolchain({ path: PATH, magickBin: MAGICK_BIN }, run);
  return writeScript(
    'magick',
    `drop=0
for word in "$@"; do
  shift
  if [ $drop -gt 0 ]; then drop=$((drop - 1)); continue; fi
  case "$word" in
    ${cases}
    *) set -- "$@" "$word" ;;
  esac
done
exec ${magick?.path} "$@"`,
  );
}

/** Replaces the Lanczos filter by another one. */
export const otherFilter = (name: string): string => `Lanczos) set -- "$@" ${name} ;;`;

/** Removes the profile without converting the colours. */
export const STRIP_ALONE = '-profile) drop=1 ;;';
