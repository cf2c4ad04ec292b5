/** @module Shell scripts that stand in for ImageMagick, or run it with modified arguments. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findToolchain } from '../../src/process/toolchain.ts';
import { fixturePath } from './client.ts';
import { makeTempDir } from './hooks.ts';
import { eventually, writeScript } from './util.ts';

/** Shell command that stands in for a conversion to WebP: it copies an image. */
export const COPY_SCENE = `cp ${fixturePath('scene.webp')} image.webp`;

/**
 * Shell text of the line that `-list resource` prints for the limit that the environment requests.
 */
export const LIST_LIMIT = 'List length: $MAGICK_LIST_LENGTH_LIMIT""B';

/**
 * Writes a script that answers probes as ImageMagick does and runs `body` for conversions.
 *
 * @param formats shell command that prints more lines of the list of formats
 */
export function fakeMagick(body: string, version = '7.1.1-43', formats = ':'): Promise<string> {
  return writeScript(
    'magick',
    `case "$*" in
  -version) echo "Version: ImageMagick ${version} Q16" ;;
  "-list format") for f in PNG JPEG GIF BMP BMP3 TIFF AVIF ICO WEBP; do echo "  $f  $f  rw+  x"; done; ${formats} ;;
  xc:red*) exit 1 ;;
  "PNG:in BMP3:allowed.bmp") ;;
  "-list resource") printf "  Width: $MAGICK_WIDTH_LIMIT""P\\n  Disk: 0B\\n  ${LIST_LIMIT}\\n" ;;
  *) ${body} ;;
esac`,
  );
}

/**
 * Writes a script that converts by `body` once `open` has been called; by default, it copies an
 * image.
 */
export async function gatedMagick(body = COPY_SCENE) {
  const folder = await makeTempDir('gate');
  const pids = async () => (await readdir(folder)).filter((name) => /^\d+$/.test(name)).map(Number);
  const wait = `echo > ${folder}/$$; while [ ! -e ${folder}/open ]; do sleep 0.05; done`;
  return {
    MAGICK_BIN: await fakeMagick(`${wait}; ${body}`),
    /** Returns the process IDs of the conversions so far. */
    pids,
    /** Waits for the first conversion. */
    started: () => eventually(async () => (await pids()).length > 0),
    /** Lets all conversions continue. */
    open: () => writeFile(join(folder, 'open'), ''),
  };
}

/** Message of ImageMagick when its policy forbids an operation. */
export const NOT_ALLOWED =
  "attempt to perform an operation not allowed by the security policy `WEBP' @ error/constitute.c/IsCoderAuthorized/426.";

/** Returns a shell command that prints a message to stderr in the format of ImageMagick. */
export const printMessage = (message: string): string =>
  `echo "magick: ${message.replaceAll('`', '\\`')}" >&2`;

/**
 * Writes a script that runs the installed ImageMagick with modified arguments, as a faulty change
 * of a plan would.
 *
 * @param cases branches of a shell `case` on `$word`; `drop=1` also removes the next argument
 */
export async function patchedMagick(cases: string): Promise<string> {
  const { PATH = '', MAGICK_BIN } = process.env;
  const { magick } = await findToolchain({ path: PATH, named: { magick: MAGICK_BIN } });
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
