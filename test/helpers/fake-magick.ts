import { loadConfig } from '../../src/config.ts';
import { listLength } from '../../src/process/environment.ts';
import { writeScript } from './util.ts';

/** What `-list resource` prints of the limit that the service's own default for MAX_FRAMES asks for. */
export const LIST_LIMIT = `List length: ${listLength({ frames: loadConfig({}).MAX_FRAMES })}B`;

/** A tool that passes for ImageMagick until it has to convert something; then it does `body`. It does not wait for images. */
export function fakeMagick(body: string, version = '7.1.1-43'): Promise<string> {
  return writeScript(
    'magick',
    `case "$*" in
  -version) echo "Version: ImageMagick ${version} Q16" ;;
  "-list format") for f in PNG JPEG GIF BMP BMP3 TIFF AVIF ICO WEBP PDF; do echo "  $f  $f  rw+  x"; done ;;
  xc:red* | "-script -" | *" @-") exit 1 ;;
  "PNG:in PDF:allowed.pdf") ;;
  "-list resource") printf "  Width: 16384P\\n  Disk: 0B\\n  ${LIST_LIMIT}\\n" ;;
  *) ${body} ;;
esac`,
  );
}

/** ImageMagick's message when its policy forbids something. */
export const NOT_ALLOWED =
  "attempt to perform an operation not allowed by the security policy `WEBP' @ error/constitute.c/IsCoderAuthorized/426.";

/** The shell's command that prints a message as ImageMagick does. */
export const printMessage = (message: string): string =>
  `echo "magick: ${message.replaceAll('`', '\\`')}" >&2`;
