#!/bin/sh
# Packages the build in dist/ for Debian 12 and 13, with Node.js: npm run deb
#
# Writes release/imagemill_VERSION_ARCHITECTURE.deb, and checks it with lintian. Two builds of a commit have the same bytes.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
version=$(node -p 'require("./package.json").version')
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export DESTDIR="$PWD/release"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$DESTDIR" "$tree/licenses"

sh scripts/copy-program.sh "$tree/program"
install -m 755 node_modules/node/bin/node "$tree/program/node"
cp "$(find node_modules/node/ -path '*/node-*/LICENSE')" "$tree/licenses/node.txt"
cp dist/licenses.md "$tree/licenses/program.md"
cp dist/web/licenses.md "$tree/licenses/web.md"
node scripts/make-package-files.ts "$tree/generated"
cp -R debian debian/bin debian/keys README.md CHANGELOG.md SECURITY.md docs "$tree"
cat >"$tree/debian/changelog" <<END
imagemill ($version) stable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
(cd "$tree" && debian/rules binary) >"$tree/log" 2>&1 || { tail -n 40 "$tree/log" >&2; exit 1; }
file=$DESTDIR/imagemill_${version}_$(dpkg --print-architecture).deb
lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$file"
echo "$file"
