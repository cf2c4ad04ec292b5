/** @module Shell scripts that stand in for ImageMagick. */
import { loadConfig } from '../../src/config.ts';
import { listLength } from '../../src/process/runner.ts';
import { writeScript } from './util.ts';

/** Line that `-list resource` prints for the limit that the default of MAX_FRAMES requests. */
export const LIST_LIMIT = `List length: ${listLength(loadConfig({}).MAX_FRAMES)}B`;

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
  "-list format") for f in PNG JPEG GIF BMP BMP3 TIFF AVIF ICO WEBP PDF; do echo "  $f  $f  rw+  x"; done; ${formats} ;;
  xc:red*) exit 1 ;;
  "PNG:in PDF:allowed.pdf") ;;
  "-list resource") printf "  Width: 16384P\\n  Disk: 0B\\n  ${LIST_LIMIT}\\n" ;;
  *) ${body} ;;
esac`,
  );
}

/** Message of ImageMagick when its policy forbids an operation. */
export const NOT_ALLOWED =
  "attempt to perform an operation not allowed by the security policy `WEBP' @ error/constitute.c/IsCoderAuthorized/426.";

/** Returns a shell command that prints a message to stderr in the format of ImageMagick. */
export const printMessage = (message: string): string =>
  `echo "magick: ${message.replaceAll('`', '\\`')}" >&2`;
