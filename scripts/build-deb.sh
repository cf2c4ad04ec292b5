#!/bin/sh
# Packages the build in dist/ for Debian 12 and 13, with Node.js: npm run deb [-- arm64]
#
# Writes release/imagemill_VERSION_ARCHITECTURE.deb, by default for the architecture of this machine, and checks it with lintian.
# Another architecture needs its cross compiler of Debian. Two builds of a commit have the same bytes. DRAFT=yes leaves out the
# compression and lintian.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
version=$(node -p 'require("./package.json").version')
own=$(dpkg --print-architecture)
arch=${1:-$own}
case $arch in
  amd64) cpu=x64 gnu=x86_64-linux-gnu ;;
  arm64) cpu=arm64 gnu=aarch64-linux-gnu ;;
  *) echo "imagemill: no package for the architecture $arch: choose amd64 or arm64" >&2; exit 1 ;;
esac
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export DESTDIR="$PWD/release"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$DESTDIR" "$tree/licenses"

sh scripts/copy-program.sh "$tree/program"
node_package=node_modules/node/node_modules/node-linux-$cpu
if [ "$arch" != "$own" ]; then
  # Replaces all machine code. npm compares sharp with package-lock.json. --force permits packages for other processors.
  mkdir "$tree/npm"
  cp package-lock.json "$tree/npm"
  echo "{\"dependencies\": {\"@img/sharp-linux-$cpu\": \"*\", \"@img/sharp-libvips-linux-$cpu\": \"*\",
    \"node-linux-$cpu\": \"$(node -p process.versions.node)\"}}" >"$tree/npm/package.json"
  npm install --prefix "$tree/npm" --force --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  rm -r "$tree/program/node_modules/@img"/sharp-* "$tree/program/dist"/fork-server.* "$tree/program/dist"/broken-codec.*
  cp -R "$tree/npm/node_modules/@img" "$tree/program/node_modules"
  CC=$gnu-gcc ARCH=$cpu sh scripts/build-fork-server.sh "$tree/program/dist"
  node_package=$tree/npm/node_modules/node-linux-$cpu
fi
install -m 755 "$node_package/bin/node" "$tree/program/node"
cp "$node_package/LICENSE" "$tree/licenses/node.txt"
cp dist/licenses.md "$tree/licenses/program.md"
cp dist/web/licenses.md "$tree/licenses/web.md"
node scripts/make-package-files.ts "$tree/generated"
cp -R debian debian/bin debian/keys README.md CHANGELOG.md SECURITY.md docs "$tree"
cat >"$tree/debian/changelog" <<END
imagemill ($version) stable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
(cd "$tree" && dpkg-architecture -a"$arch" -c debian/rules binary) >"$tree/log" 2>&1 || { tail -n 40 "$tree/log" >&2; exit 1; }
file=$DESTDIR/imagemill_${version}_$arch.deb
[ -n "${DRAFT-}" ] || lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$file"
echo "$file"
