#!/bin/sh
# Runs a command of this checkout in a Debian 13 chroot with ImageMagick 7, on a machine with another version:
#
#   sudo sh scripts/debian-13.sh mocha 'test/process/**/*.test.ts'
#
# debootstrap creates the system once, in DEBIAN_13 (by default below the temporary folder), with everything that the tests
# need except a browser and a compiler. The command runs with its own mounts, which are removed when it ends. It cannot mount
# anything itself. Tests that need one of these are skipped. Exits with 75 (EX_TEMPFAIL of sysexits.h) if this machine cannot do
# that.
set -eu
cd "$(dirname "$0")/.."
. scripts/debian.sh
root=${DEBIAN_13:-${TMPDIR:-/tmp}/imagemill-debian-13}
packages=imagemagick,librsvg2-bin,poppler-utils,qpdf,pngquant,libimage-exiftool-perl,python3-pil,curl,unzip,procps
# Programs and libraries for EXTRA_INPUTS and EXTRA_OUTPUTS.
packages=$packages,libheif-plugin-libde265,libjxl-tools,libavif-bin

cannot() { echo "imagemill: cannot run a Debian 13 chroot: $*" >&2; exit 75; }

needs_root_and_mounts
if [ "$(cat "$root/.made" 2>/dev/null)" != "$packages" ]; then
  echo "imagemill: creating a Debian 13 chroot in $root" >&2
  make_system trixie "$root" "$root.log"
  copy_settings "$root" /root/.npmrc
  install_packages "$root" $(echo "$packages" | tr , ' ') >>"$root.log"
  echo "$packages" >"$root/.made"
fi
# Only dwebp and img2webp: their package also has viewers, which depend on the libraries of OpenGL.
if [ ! -x "$root/usr/bin/img2webp" ]; then
  chroot "$root" sh -c 'cd /tmp && apt-get update -qq && apt-get download -qq webp && dpkg-deb --fsys-tarfile webp_*.deb' |
    tar -x -C "$root" ./usr/bin/dwebp ./usr/bin/img2webp || cannot 'dwebp and img2webp cannot be downloaded'
fi
# Compile the program for test/process/sandbox/broken-codec.test.ts here: a compiler would double the size of the system.
if command -v cc >/dev/null; then
  cc -O1 -pthread -rdynamic -o "$root/usr/local/bin/imagemill-broken-codec" src/process/sandbox/broken-codec.c ||
    echo 'imagemill: cannot compile src/process/sandbox/broken-codec.c for the chroot' >&2
fi
MOUNTS="$PWD /checkout
"
in_system "$root" MAY_SKIP="browser,mounts,compiler,${MAY_SKIP:-}" PATH=/checkout/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin \
  sh -c 'cd /checkout && exec "$@"' sh "$@"
