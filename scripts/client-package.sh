#!/bin/sh
# Builds the package imagemill-client for applications, and prints its path. Two runs give the same bytes.
#
#   sh scripts/client-package.sh [FOLDER]     by default release/
#
# It has the client as an ES module and as a CommonJS module. Each has its own types, because TypeScript reads them in the module
# system of the nearest package.json.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
release=${1:-release}
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT

cp src/client/package/* "$package"
tsc -p src/client/library --target es2022 --outDir "$package/esm"
tsc -p src/client/library --target es2022 --outDir "$package/cjs" \
  --module commonjs --moduleResolution bundler --verbatimModuleSyntax false
echo '{"type":"module"}' >"$package/esm/package.json"
echo '{"type":"commonjs"}' >"$package/cjs/package.json"
version=$(node -p 'require("./package.json").version')
npm pkg set --prefix "$package" "version=$version"
mkdir -p "$release"
npm pack --silent --pack-destination "$release" "$package" >/dev/null
echo "$release/imagemill-client-$version.tgz"
