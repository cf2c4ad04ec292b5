#!/bin/sh
# Prepares this checkout: installs the tools and the npm packages, and builds. Runs before
# `npm start` and `npm test`. Skips steps that are already done.
#
#   sh scripts/bootstrap.sh serve|test|full|docker|package|release
#   sh scripts/bootstrap.sh build                 only builds
#
# Needs npm and any Node.js that npm runs on, such as version 18 of Debian 12.
set -eu
purpose=${1:-serve}
cd "$(dirname "$0")/.."

main() {
  if [ "$purpose" != build ]; then
    install_tools
    install_packages
    [ "$purpose" != test ] && [ "$purpose" != full ] || install_promtool
  fi
  build
}

# --- tools -----------------------------------------------------------------

install_tools() {
  missing=$(missing_packages | sed 's/ $//')
  [ -n "$missing" ] || return 0
  case $(package_manager) in
    apt)  install_with_apt "$missing" ;;
    brew) run_or_fail brew install $(brew_names "$missing") ;;
    *)    fail_missing "$missing (Debian's names); install them with your system's package manager" ;;
  esac
  still=$(missing_packages)
  [ -z "$still" ] || fail_missing "$still"
}

# Prints the Debian names of the packages whose programs are missing.
missing_packages() {
  # A build of packages for Debian runs no conversions. That of a release compiles for arm64, too.
  if [ "$purpose" = package ] || [ "$purpose" = release ]; then
    can_compile || printf 'gcc libc6-dev '
    has dh || printf 'debhelper '
    has lintian || printf 'lintian '
    [ "$purpose-$(uname -m)" != release-x86_64 ] || has aarch64-linux-gnu-gcc || printf 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross '
    return
  fi
  magick=$(magick_version)
  [ -n "$magick" ] || printf 'imagemagick '
  [ -n "${RSVG_BIN:-}" ] || has rsvg-convert || printf 'librsvg2-bin '
  has qpdf || printf 'qpdf '         # combines images to a PDF
  has pngquant || printf 'pngquant ' # selects the colours of a PNG
  # img2webp writes animated WebP. ImageMagick 6 (Debian 12) also needs a separate tool for transparent AVIF.
  if [ "$(package_manager)" = apt ]; then
    has img2webp || printf 'webp '
    [ "$magick" = 7 ] || has heif-convert || printf 'libheif-examples '
  fi
  # Tools for the formats that EXTRA_INPUTS and EXTRA_OUTPUTS list. The tests enable all of them.
  if wants "${EXTRA_INPUTS:-}" jxl || wants "${EXTRA_OUTPUTS:-}" jxl; then
    has djxl && has cjxl || printf 'libjxl-tools '
  fi
  if wants "${EXTRA_OUTPUTS:-}" avif; then has avifenc || printf 'libavif-bin '; fi
  if wants "${EXTRA_INPUTS:-}" pdf; then has pdftocairo || printf 'poppler-utils '; fi
  if wants "${EXTRA_INPUTS:-}" heic && [ "$magick" = 7 ] && [ "$(package_manager)" = apt ]; then
    magick -list format 2>/dev/null | grep -q '^ *HEIC\*\{0,1\}  *HEIC  *r' || printf 'libheif-plugin-libde265 '
  fi
  # The build compiles the fork server, which also confines the tools, on Linux.
  if [ "$(package_manager)" = apt ]; then can_compile || printf 'gcc libc6-dev '; fi
  # The tests check results with independent decoders, and the service with a browser and curl.
  if [ "$purpose" != serve ]; then
    has curl || printf 'curl '
    [ "$(package_manager)" != apt ] || has groff || printf 'groff-base '
    has unzip || printf 'unzip '
    [ "$(package_manager)" != apt ] || has cppcheck || printf 'cppcheck '
    has_daemon redis-server || printf 'redis-server '
    [ "$(package_manager)" != apt ] || has systemd-analyze || printf 'systemd '
    [ "$(package_manager)" != apt ] || /usr/bin/python3 -c 'import seccomp' 2>/dev/null || printf 'python3-seccomp '
    has_daemon nginx || printf 'nginx-light '
    has exiftool || printf 'libimage-exiftool-perl '
    # Debian packages are for /usr/bin/python3, which may not be the first Python on the PATH.
    /usr/bin/python3 -c 'import PIL' 2>/dev/null || python3 -c 'import PIL' 2>/dev/null || printf 'python3-pil '
    has chromium || has chromium-browser || has google-chrome || [ -d /Applications/Chromium.app ] ||
      [ -d '/Applications/Google Chrome.app' ] || printf 'chromium '
    # The browser without windows takes a third of the processor time, but cannot show a PDF.
    ! is_debian || has chromium-headless-shell || printf 'chromium-headless-shell '
  fi
  # Of the tests, only the exhaustive ones need a second browser, and a cluster.
  if [ "$purpose" = full ]; then
    has_daemon slurmctld || [ "$(package_manager)" != apt ] || printf 'slurmctld slurmd slurm-client munge '
    has firefox-esr || has firefox || [ "$(package_manager)" != apt ] || printf 'firefox-esr '
  fi
  # The container tests build the image and its base image. Newer Debian versions package the docker command separately.
  if [ "$purpose" = docker ]; then
    has_daemon debootstrap || printf 'debootstrap '
    has skopeo || printf 'skopeo '
    has_daemon dockerd || printf 'docker.io '
    has docker || ! apt-cache show docker-cli >/dev/null 2>&1 || printf 'docker-cli '
  fi
}

# Prints 6, 7 or nothing. Checks the version text, because other programs are also called convert.
magick_version() {
  for candidate in ${MAGICK_BIN:-} $(on_path magick) $(on_path convert); do
    version=$("$candidate" -version 2>/dev/null </dev/null | sed -n 's/^Version: ImageMagick \([67]\)\..*/\1/p' | head -n 1)
    if [ -n "$version" ]; then echo "$version"; return; fi
  done
}

# Checks whether a list of formats contains a format, in any case: wants LIST NAME. The tests use all formats.
wants() {
  [ "$purpose" = serve ] || return 0
  case ",$(echo "$1" | tr 'A-Z' 'a-z' | tr -d ' ')," in *,all,* | *,"$2",*) return 0 ;; *) return 1 ;; esac
}

on_path() {
  old_ifs=$IFS
  IFS=:
  for folder in $PATH; do [ ! -x "$folder/$1" ] || printf '%s\n' "$folder/$1"; done
  IFS=$old_ifs
}

is_debian() { grep -q '^ID=debian' /etc/os-release 2>/dev/null; }

can_compile() { echo '#include <linux/seccomp.h>' | cc -include stdlib.h -E - >/dev/null 2>&1; }

has() { command -v "$1" >/dev/null 2>&1; }

# Finds programs in /usr/sbin, which is not on the PATH of every user.
has_daemon() { has "$1" || [ -x "/usr/sbin/$1" ]; }

package_manager() {
  if has apt-get; then echo apt; elif has brew; then echo brew; fi
}

brew_names() {
  echo "$1" | sed 's/librsvg2-bin/librsvg/; s/poppler-utils/poppler/; s/libimage-exiftool-perl/exiftool/; s/python3-pil/pillow/; s/redis-server/redis/; s/nginx-light/nginx/; s/libjxl-tools/jpeg-xl/; s/libavif-bin/libavif/'
}

install_with_apt() {
  if [ "$(id -u)" = 0 ]; then
    apt_install '' "$1" || fail_with_command "$(apt_command '' "$1")"
  else
    has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; } && apt_install sudo "$1" ||
      fail_with_command "$(apt_command 'sudo ' "$1")"
  fi
}

apt_install() {
  say "installing with apt: $2"
  options='-qq -o DPkg::Lock::Timeout=120'
  without_daemons "$1" 101
  $1 apt-get update $options &&
    $1 env DEBIAN_FRONTEND=noninteractive apt-get install $options -y --no-install-recommends $2 >/dev/null
  status=$?
  without_daemons "$1" ''
  return $status
}

# Prevents installed services from starting: Debian packages run policy-rc.d before they start a service.
without_daemons() {
  policy=/usr/sbin/policy-rc.d
  if [ -n "$2" ]; then
    [ -e $policy ] || printf '#!/bin/sh\n# imagemill: while packages are installed\nexit %s\n' "$2" | $1 sh -c "cat >$policy && chmod 755 $policy"
  elif grep -q 'imagemill: while' $policy 2>/dev/null; then
    $1 rm $policy
  fi
}

apt_command() {
  echo "$1apt-get update && $1apt-get install -y --no-install-recommends $2"
}

run_or_fail() {
  say "$*"
  "$@" || fail_with_command "$*"
}

# Extracts promtool, which tests the alerts for Prometheus, from its package: this also has a server, and depends on libraries of its
# page. Without promtool, the test is skipped.
install_promtool() {
  ! has promtool && [ ! -x node_modules/.bin/promtool ] && [ "$(package_manager)" = apt ] || return 0
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -qq prometheus >/dev/null 2>&1 && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool) &&
    mv "$folder/usr/bin/promtool" node_modules/.bin/ || say 'promtool cannot be downloaded'
  rm -r "$folder"
}

# --- npm packages and the build ----------------------------------------------

install_packages() {
  stamp=node_modules/.installed-from
  sum=$(cksum package.json package-lock.json)
  # Reinstall if development packages were removed since (npm prune).
  [ "$(cat $stamp 2>/dev/null)" != "$sum" ] || [ ! -x node_modules/.bin/mocha ] || [ ! -x node_modules/.bin/node ] || return 0
  say 'installing npm packages'
  run_npm ci --include=dev --no-audit --no-fund --loglevel=error
  # If install scripts are disabled, the packaged Node.js is not in place yet.
  node_modules/.bin/node --version >/dev/null 2>&1 || run_npm rebuild node --ignore-scripts=false --loglevel=error
  printf '%s\n' "$sum" >$stamp
}

# Runs npm on Node.js 22.17 or newer: npm leaves out optional packages for which its Node.js is too old. If the one on the PATH
# is, first installs the one of package.json in .node/. The one in node_modules/.bin, which npm scripts have first on the PATH,
# does not count, because npm replaces it.
run_npm() (
  PATH=$(printf '%s' "$PATH" | awk -v RS=: -v ORS=: -v packages="$PWD/node_modules/.bin" '$0 != packages')
  PATH=${PATH%:}
  if ! suffices; then
    version=$(sed -n 's/^ *"node": "\([0-9.]*\)",*$/\1/p' package.json)
    own=$PWD/.node/node_modules/.bin
    if [ "$("$own/node" --version 2>/dev/null)" != "v$version" ]; then
      say "installing Node.js $version, because $(node --version) is too old"
      npm install --prefix .node --no-save --no-package-lock --ignore-scripts=false --no-audit --no-fund \
        --loglevel=error "node@$version"
    fi
    PATH=$own:$PATH
    suffices || fail "Node 22.17 or newer is needed; here is $(node --version)"
  fi
  npm "$@"
)

suffices() {
  node -e 'const [major, minor] = process.versions.node.split("."); process.exit(+major > 22 || (+major === 22 && +minor >= 17) ? 0 : 1)'
}

build() {
  if [ -e dist/.built ] && [ -z "$(find src assets scripts/build-fork-server.sh package-lock.json tsconfig.json vite.config.ts vite.node.config.ts -newer dist/.built | head -n 1)" ]; then
    return 0
  fi
  say 'building'
  PATH=$PWD/node_modules/.bin:$PATH npm run --silent build
}

# --- messages ----------------------------------------------------------------

say() { echo "imagemill: $*"; }
fail() { say "$*" >&2; exit 1; }
fail_missing() { fail "these are missing: $1"; }
fail_with_command() { fail "these are missing: $missing. Install them with:
  $1"; }

main
