import type { WorkerDeps } from '../../src/process/workers/worker.ts';
import { writeScript } from './util.ts';

/** Version 6 begins when it has read all that it is told. */
const READ_ALL = 'exec <<END\n$(cat)\nEND\n';

/**
 * Passes for ImageMagick that waits: it takes arguments from standard input; one that starts with a dot is a shell script.
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
