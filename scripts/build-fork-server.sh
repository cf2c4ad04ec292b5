#!/bin/sh
# Compiles the fork server, and the stand-in for a decoder that was taken over (imagemill doctor --attack), to dist/ or another
# folder, for this CPU architecture or for another one:
#
#   sh scripts/build-fork-server.sh
#   CC=aarch64-linux-gnu-gcc ARCH=arm64 sh scripts/build-fork-server.sh FOLDER
#
# The flags are those with which Debian hardens its programs. Other systems than Linux have no use for it.
set -eu
cd "$(dirname "$0")/.."
[ "$(uname -s)" = Linux ] || exit 0
arch=${ARCH:-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')}
# Branch protection has another name on each architecture.
case $arch in arm64) branches=-mbranch-protection=standard ;; *) branches=-fcf-protection ;; esac
folder=${1:-dist}
mkdir -p "$folder"
compile() {
  ${CC:-cc} -std=gnu17 -O2 -Wall -Werror -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2 $branches \
    -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs ${CFLAGS:-} "$@"
}
compile -Wextra -Wconversion -Wshadow -fPIC -shared -fvisibility=hidden \
  -o "$folder/fork-server.$arch.so" src/process/fork-server/fork-server.c
# The fork server finds a function of the program by its name, as in fontconfig.
compile -fPIE -pie -pthread -rdynamic -o "$folder/broken-codec.$arch" src/process/sandbox/broken-codec.c
