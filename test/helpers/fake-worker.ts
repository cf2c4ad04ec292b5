/** @module Shell script that stands in for an ImageMagick worker. */
import type { WorkerDeps } from '../../src/process/workers/worker.ts';
import { writeScript } from './util.ts';

/** Shell code that reads all of stdin before running it, as version 6 does. */
const READ_ALL = 'exec <<END\n$(cat)\nEND\n';

/**
 * Writes a script that reads arguments from stdin, as an ImageMagick worker does. It evaluates lines that start with a
 * dot as shell code.
 */
export async function fakeWorker(major: 6 | 7 = 7): Promise<WorkerDeps['magick']> {
  const path = await writeScript(
    'magick',
    `${major === 6 ? READ_ALL : ''}while read -r line; do
  case "$line" in
    *"-print 'imagemill: done"*) line="\${line#*"'"}"; printf "\${line%"'"*}" ;;
    "'. "*) line="\${line#?}"; eval "\${line%?}" ;;
  esac
done`,
  );
  return { path, major };
}
