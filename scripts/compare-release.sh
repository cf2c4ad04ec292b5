#!/bin/sh
# Compares the conversions of this commit with those of release 0.2.0, for the fixtures and for every image of the given folders:
#
#   npm run compare-release -- FOLDER...
#
# Builds the release once, in RELEASE_CACHE (by default below the temporary folder), and keeps its results there for each folder and
# version of ImageMagick. Shows what changed, also in compare-release-N.html and .json. CHANGELOG.md explains the differences.
set -eu
commit=2f1b393dbd00292e1f45a00b7f35403a3d9fe189
cache=${RELEASE_CACHE:-${TMPDIR:-/tmp}/imagemill-release-0.2.0}
export EXTRA_INPUTS=all

if [ ! -f "$cache/dist/.built" ]; then
  rm -rf "$cache"
  git clone -q "$(dirname "$0")/.." "$cache"
  (cd "$cache" && git checkout -q $commit && npm ci --silent && npm run --silent build)
fi
magick=$({ magick -version 2>/dev/null || convert -version; } | head -n 1 | cut -d ' ' -f 3)
matrix=$cache/matrix.yaml
cat >"$matrix" <<'END'
cases:
  - { name: png, format: png }
  - { name: jpg, format: jpg }
  - { name: gif, format: gif }
  - { name: png-70, format: png, width: 70 }
  - { name: webp-300, format: webp, width: 300 }
  - { name: jpg-contain, format: jpg, width: 200, height: 200, fit: contain }
END

number=0
status=0
for folder in fixtures "$@"; do
  number=$((number + 1))
  results=$cache/$magick-$(realpath "$folder" | cksum | cut -d ' ' -f 1)
  [ -d "$results" ] || node "$cache/dist/main.js" regress record "$folder" --matrix "$matrix" --to "$results"
  node dist/main.js regress check "$folder" --against "$results" \
    --report "compare-release-$number.html" --json "compare-release-$number.json" || status=$?
done
exit $status
