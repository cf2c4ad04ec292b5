#!/bin/sh
# Makes all files of a release in release/, from the last commit, and publishes nothing: npm run release
#
# With WITHOUT_IMAGE=yes, it makes no container image, which needs Docker and skopeo. Two releases of a commit have the same bytes,
# except the image, because its build installs the newest packages of Debian.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
image=imagemill:$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

main() {
  check
  rm -rf release dist
  mkdir release
  sh scripts/bootstrap.sh release
  PATH=$PWD/node_modules/.bin:$PATH
  release_notes >release/RELEASE-NOTES.md
  # A machine with amd64 also makes the package for arm64.
  for arch in $(dpkg --print-architecture | sed 's/amd64/amd64 arm64/'); do
    deb=$(sh scripts/build-deb.sh "$arch")
    dpkg-deb --fsys-tarfile "$deb" | tar --extract --to-stdout ./usr/lib/imagemill/dist/sbom.cdx.json >"release/imagemill-$version.cdx.json"
    npm_package "node $(node -p process.versions.node)" | write_sbom imagemill "${deb%.deb}"
  done
  npm pack --ignore-scripts --silent --pack-destination release >/dev/null
  client=$(sh scripts/client-package.sh)
  write_sbom imagemill-client "${client%.tgz}" </dev/null
  [ -n "${WITHOUT_IMAGE:-}" ] || make_image
  (cd release && sha256sum -- * >/tmp/imagemill-sums-$$ && mv /tmp/imagemill-sums-$$ SHA256SUMS && ls -l)
  say "the files of version $version are in release/. Nothing was published."
  grep -q '"license":' package.json || ls LICENSE* >/dev/null 2>&1 ||
    say 'there is no licence: choose one before you publish these files.'
}

# Ends before anything is built.
check() {
  [ -z "$(git status --porcelain)" ] || fail 'this checkout has changes: commit or remove them'
  [ -n "$(release_notes)" ] || fail "CHANGELOG.md has no version $version"
  for tool in apt-get npm dpkg-deb; do has $tool || fail "$tool is missing: release on Debian 12"; done
  [ -n "${WITHOUT_IMAGE:-}" ] || {
    docker info >/dev/null 2>&1 && has skopeo || fail 'the image needs a running Docker, and skopeo: WITHOUT_IMAGE=yes leaves it out'
  }
}

# Prints what CHANGELOG.md says about the version.
release_notes() { awk -v heading="## [$version]" 'index($0, heading) == 1 { found = 1; next } /^## / { found = 0 } found' CHANGELOG.md; }

make_image() {
  sh scripts/build-image.sh
  sh scripts/save-image.sh "$image" "release/imagemill-$version-image.tar"
  in_image() { docker run --rm --network none --entrypoint "$@"; }
  {
    npm_package "node $(in_image node "$image" -p process.versions.node)"
    in_image dpkg-query "$image" -W -f '${Package} ${Version} pkg:deb/debian/${Package}@${Version}?arch=${Architecture}\n'
  } | write_sbom imagemill "release/imagemill-$version-image"
}

npm_package() { echo "$1 pkg:npm/${1% *}@${1#* }"; }

# Writes a software bill of materials, with that of the program and the components in standard input: write_sbom NAME FILE
write_sbom() {
  node -e '
    const { readFileSync, writeFileSync } = require("node:fs");
    const [, name, file, base] = process.argv;
    const bom = JSON.parse(readFileSync(base, "utf8"));
    const more = readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => {
      const [name, version, purl] = line.split(" ");
      return { "bom-ref": purl, type: "application", name, version, purl, scope: "required" };
    });
    const own = name === bom.metadata.component.name ? bom.components : [];
    const isRepeated = ({ purl }) => more.some((component) => component.purl === purl);
    bom.components = [...own.filter((component) => !isRepeated(component)), ...more];
    if (own.length === 0) {
      const { version } = bom.metadata.component;
      const purl = `pkg:npm/${name}@${version}`;
      bom.metadata.component = { "bom-ref": purl, type: "library", name, version, purl };
      bom.dependencies = [];
    }
    writeFileSync(`${file}.cdx.json`, `${JSON.stringify(bom, null, 2)}\n`);
  ' "$1" "$2" "release/imagemill-$version.cdx.json"
}

has() { command -v "$1" >/dev/null 2>&1; }
say() { echo "imagemill: $*"; }
fail() { say "$*" >&2; exit 1; }

main
