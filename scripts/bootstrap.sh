#!/bin/sh
# Makes this checkout ready: the tools, the npm packages, the build. Runs before `npm start`
# and `npm test`, does only what is missing, and is over in a moment when nothing is.
#
#   sh scripts/bootstrap.sh serve|test|docker
set -eu
purpose=${1:-serve}
cd "$(dirname "$0")/.."

main() {
  install_tools
  install_packages
  check_node
  build
}

# --- tools -----------------------------------------------------------------

install_tools() {
  missing=$(missing_packages | sed 's/ $//')
  [ -n "$missing" ] || return 0
  case $(package_manager) in
    apt)  install_with_apt "$missing" ;;
    brew) run_or_tell brew install $(brew_names "$missing") ;;
    *)    tell "$missing (Debian's names); install them with your system's package manager" ;;
  esac
  still=$(missing_packages)
  [ -z "$still" ] || tell "$still"
}

# Debian's names of the packages whose programs are not here.
missing_packages() {
  magick=$(magick_version)
  [ -n "$magick" ] || printf 'imagemagick '
  [ -n "${RSVG_BIN:-}" ] || has rsvg-convert || printf 'librsvg2-bin '
  # Version 6, which Debian 12 has, needs help with WebP that moves and AVIF that is transparent.
  if [ "$magick" != 7 ] && [ "$(package_manager)" = apt ]; then
    has img2webp || printf 'webp '
    has heif-convert || printf 'libheif-examples '
  fi
  # What the formats need that EXTRA_INPUTS and EXTRA_OUTPUTS list; the tests switch all of them on.
  if wants "${EXTRA_INPUTS:-}" jxl || wants "${EXTRA_OUTPUTS:-}" jxl; then
    has djxl && has cjxl || printf 'libjxl-tools '
  fi
  if wants "${EXTRA_OUTPUTS:-}" avif; then has avifenc || printf 'libavif-bin '; fi
  if wants "${EXTRA_INPUTS:-}" heic && [ "$magick" = 7 ] && [ "$(package_manager)" = apt ]; then
    magick -list format 2>/dev/null | grep -q '^ *HEIC\*\{0,1\}  *HEIC  *r' || printf 'libheif-plugin-libde265 '
  fi
  # What hides files from the tools: newer versions of setpriv do, where they are not bubblewrap does.
  if [ "$(package_manager)" = apt ]; then
    setpriv --help 2>/dev/null | grep -q landlock || has bwrap || printf 'bubblewrap '
  fi
  # The tests look at results with other pairs of eyes, and at the service as a browser and as curl.
  if [ "$purpose" != serve ]; then
    has pdftoppm || printf 'poppler-utils '
    has curl || printf 'curl '
    has unzip || printf 'unzip '
    has_daemon redis-server || printf 'redis-server '
    [ "$(package_manager)" != apt ] || has systemd-analyze || printf 'systemd '
    [ "$(package_manager)" != apt ] || /usr/bin/python3 -c 'import seccomp' 2>/dev/null || printf 'python3-seccomp '
    has_daemon nginx || printf 'nginx-light '
    has qpdf || printf 'qpdf '
    has exiftool || printf 'libimage-exiftool-perl '
    # The system's own Python, which may not be the first on the path, is the one that packages are for.
    /usr/bin/python3 -c 'import PIL' 2>/dev/null || python3 -c 'import PIL' 2>/dev/null || printf 'python3-pil '
    has chromium || has chromium-browser || has google-chrome || [ -d /Applications/Chromium.app ] ||
      [ -d '/Applications/Google Chrome.app' ] || printf 'chromium '
  fi
  # The tests of the image make one, and what it is based on. Newer Debians have the command in a package of its own.
  if [ "$purpose" = docker ]; then
    has_daemon debootstrap || printf 'debootstrap '
    has_daemon dockerd || printf 'docker.io '
    has docker || ! apt-cache show docker-cli >/dev/null 2>&1 || printf 'docker-cli '
  fi
}

# 6 or 7, or nothing. Other programs are called convert, too: only the version text counts.
magick_version() {
  for candidate in ${MAGICK_BIN:-} $(on_path magick) $(on_path convert); do
    version=$("$candidate" -version 2>/dev/null </dev/null | sed -n 's/^Version: ImageMagick \([67]\)\..*/\1/p' | head -n 1)
    if [ -n "$version" ]; then echo "$version"; return; fi
  done
}

# Whether a list of formats has this one, in any case: wants LIST NAME. The tests want all.
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

has() { command -v "$1" >/dev/null 2>&1; }

# Programs that not every user has on the path.
has_daemon() { has "$1" || [ -x "/usr/sbin/$1" ]; }

package_manager() {
  if has apt-get; then echo apt; elif has brew; then echo brew; fi
}

brew_names() {
  echo "$1" | sed 's/librsvg2-bin/librsvg/; s/poppler-utils/poppler/; s/libimage-exiftool-perl/exiftool/; s/python3-pil/pillow/; s/redis-server/redis/; s/nginx-light/nginx/; s/libjxl-tools/jpeg-xl/; s/libavif-bin/libavif/'
}

install_with_apt() {
  if [ "$(id -u)" = 0 ]; then
    apt_install '' "$1" || tell_command "$(apt_command '' "$1")"
  elif has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    apt_install sudo "$1" || tell_command "$(apt_command 'sudo ' "$1")"
  else
    tell_command "$(apt_command 'sudo ' "$1")"
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

# Nothing that is installed for the tests may start by itself: Debian's packages ask this script first.
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

run_or_tell() {
  say "$*"
  "$@" || tell_command "$*"
}

# --- npm packages and the build ----------------------------------------------

install_packages() {
  stamp=node_modules/.installed-from
  sum=$(cksum package.json package-lock.json)
  # Somebody may have taken the development packages away since.
  [ "$(cat $stamp 2>/dev/null)" != "$sum" ] || [ ! -x node_modules/.bin/mocha ] || [ ! -x node_modules/.bin/node ] || return 0
  say 'installing npm packages'
  npm ci --include=dev --no-audit --no-fund --loglevel=error
  # Where install scripts are switched off, the packaged Node is not in place yet.
  node_modules/.bin/node --version >/dev/null 2>&1 || npm rebuild node --ignore-scripts=false --loglevel=error
  printf '%s\n' "$sum" >$stamp
}

# npm puts node_modules/.bin first on the PATH of its scripts, so that is the Node they get.
check_node() {
  PATH=$PWD/node_modules/.bin:$PATH
  node -e 'const [major, minor] = process.versions.node.split("."); process.exit(+major > 22 || (+major === 22 && +minor >= 17) ? 0 : 1)' ||
    fail "Node 22.17 or newer is needed; here is $(node --version)"
}

build() {
  if [ -e dist/.built ] && [ -z "$(find src package-lock.json tsconfig.json tsconfig.build.json vite.config.ts -newer dist/.built | head -n 1)" ]; then
    return 0
  fi
  say 'building'
  npm run --silent build
}

# --- words -------------------------------------------------------------------

say() { echo "imagemill: $*"; }
fail() { say "$*" >&2; exit 1; }
tell() { fail "these are missing: $1"; }
tell_command() { fail "these are missing: $missing. Install them with:
  $1"; }

main
