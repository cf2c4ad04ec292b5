import { createRunner } from '../../src/process/runner.ts';
import { findToolchain } from '../../src/process/toolchain.ts';
import { launchers } from './launchers.ts';
import { writeScript } from './util.ts';

/**
 * The machine's own ImageMagick with other arguments, as a careless change of a plan would have them. It takes them
 * from its command line alone: no process of it waits for images.
 *
 * @param cases what becomes of `$word`, as branches of a shell's `case`; `drop=1` leaves out the next word, too
 */
export async function patchedMagick(cases: string): Promise<string> {
  const { PATH = '', MAGICK_BIN } = process.env;
  const ask = createRunner({ launchers, searchPath: PATH, policyFolder: '/nonexistent' });
  const { magick } = await findToolchain({ path: PATH, magickBin: MAGICK_BIN }, ask);
  return writeScript(
    'magick',
    `case "$*" in "-script -" | *" @-") exit 1 ;; esac
drop=0
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

/** Instead of Lanczos. */
export const otherFilter = (name: string): string => `Lanczos) set -- "$@" ${name} ;;`;

/** The profile goes, and the colours stay as they were. */
export const STRIP_ALONE = '-profile) drop=1 ;;';
