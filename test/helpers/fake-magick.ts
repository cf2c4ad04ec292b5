import { script } from './scripts.ts';

/** A tool that passes for ImageMagick until it has to convert something; then it does `body`. It does not wait for images. */
export function fakeMagick(body: string, version = '7.1.1-43'): Promise<string> {
  return script(
    'magick',
    `case "$*" in
  -version) echo "Version: ImageMagick ${version} Q16" ;;
  "-list format") for f in PNG JPEG GIF BMP BMP3 TIFF AVIF ICO WEBP PDF; do echo "  $f  $f  rw+  x"; done ;;
  xc:red* | "-script -" | *" @-") exit 1 ;;
  "PNG:in PDF:allowed.pdf") ;;
  "-list resource") printf "  Width: 16384P\\n  Disk: 0B\\n  List length: 1512B\\n" ;;
  *) ${body} ;;
esac`,
  );
}
