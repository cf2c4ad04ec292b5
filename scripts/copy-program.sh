#!/bin/sh
# Copies the built program into a new folder, without development files: sh scripts/copy-program.sh FOLDER
#
# SOURCE_DATE_EPOCH replaces the time in the software bill of materials, so that two copies have the same bytes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1/node_modules"
cp -R package.json assets dist "$1"
rm -f "$1/dist/.built"
# The build contains all packages except PDFium (@hyzyla), jxl-oxide-wasm and sharp with @img, detect-libc and semver: see
# vite.node.config.ts.
for package in @hyzyla @img detect-libc jxl-oxide-wasm semver sharp; do cp -R "node_modules/$package" "$1/node_modules"; done
# Copies of PDFium for browsers.
find "$1/node_modules/@hyzyla" -name '*base64*' -delete
time=$(date --utc --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%FT%TZ)
# npm states the folder as the name of the application.
npm run --silent sbom | sed "/\"serialNumber\": /d; s/\"timestamp\": \".*\"/\"timestamp\": \"$time\"/
  /\"type\": \"application\"/{n; s/\"name\": \".*\"/\"name\": \"imagemill\"/}" >"$1/dist/sbom.cdx.json"
# Readable for all users and writable only for root, whatever the permissions of the checkout are.
find "$1" -type d -exec chmod 755 {} + -o -exec chmod 644 {} +
chmod 755 "$1/dist"/broken-codec.*
