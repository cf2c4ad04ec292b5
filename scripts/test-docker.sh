#!/bin/sh
# Builds docker/Dockerfile and has test/container/ try the image, by a Docker of its own:
#
#   sudo sh scripts/test-docker.sh [more words for mocha]
#
# The image that it is based on is made by debootstrap, once; it and Docker's images stay in DOCKER_CACHE (by default
# below the temporary folder), everything else ends with the script. Status 75, as sysexits has it, when that cannot be
# done here.
set -eu
cd "$(dirname "$0")/.."
cache=${DOCKER_CACHE:-${TMPDIR:-/tmp}/imagemill-docker}
log=$cache/log
base=$(sed -n 's/^ARG NODE_IMAGE=//p' docker/Dockerfile)
PATH=$PWD/node_modules/.bin:$PATH
export DOCKER_HOST="unix://$cache/socket"
export DOCKER_CONFIG="$cache/config"
# The builder that comes with Docker wherever it is from; the other one is a package of its own.
export DOCKER_BUILDKIT=0

main() {
  [ "$(id -u)" = 0 ] || cannot 'only root can start a Docker of its own'
  unshare --mount true 2>/dev/null || cannot 'this machine allows no mounts'
  # Again where that fails: which package has Docker's command may only be known when apt has been updated.
  sh scripts/bootstrap.sh docker || sh scripts/bootstrap.sh docker ||
    { command -v dockerd >/dev/null && exit 1 || cannot 'it could not be installed'; }
  mkdir -p -m 700 "$cache" "$DOCKER_CONFIG"
  : >"$log"
  trap stop_docker EXIT
  trap 'exit 130' INT TERM
  start_docker
  docker image inspect "$base" >/dev/null 2>&1 || make_base
  build docker/Dockerfile --target build --tag imagemill-build
  build docker/Dockerfile --tag "imagemill:$(node -p "require('./package.json').version")"
  for name in nginx valkey compose; do
    build test/container/stand-ins.Dockerfile --target $name --tag "imagemill-test-$name"
  done
  docker image prune --force >>"$log"
  mocha "$@" 'test/container/*.ts'
}

# --- Docker ------------------------------------------------------------------

# In a view of the mounts of its own, which goes with it; nothing of the machine's network is changed but for the
# bridges of compose, which are gone before it ends.
start_docker() {
  say 'starting a Docker'
  unshare --mount --propagation private dockerd --host "$DOCKER_HOST" --data-root "$cache/data" \
    --exec-root "$cache/exec" --pidfile "$cache/pid" --exec-opt native.cgroupdriver=cgroupfs \
    --bridge=none --iptables=false --ip6tables=false --ip-forward=false >"$cache/dockerd.log" 2>&1 &
  daemon=$!
  tries=0
  until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    kill -0 $daemon 2>/dev/null && [ $tries -lt 60 ] || cannot "no dockerd: $(tail -n 1 "$cache/dockerd.log")"
    sleep 0.5
  done
  remove_all
  docker network create imagemill-try >>"$log" 2>&1 && docker network rm imagemill-try >>"$log" 2>&1 ||
    cannot "no networks: $(tail -n 1 "$log")"
}

# What an earlier run left, or this one.
remove_all() {
  containers=$(docker ps --all --quiet)
  [ -z "$containers" ] || docker rm --force --volumes $containers >>"$log"
  docker network prune --force >>"$log"
}

stop_docker() {
  status=$?
  trap - EXIT
  if [ -n "${daemon:-}" ] && kill -0 "$daemon" 2>/dev/null; then
    remove_all || true
    kill "$daemon"
    wait "$daemon" || true
  fi
  exit $status
}

build() {
  file=$1
  shift
  say "building $*"
  docker build --network host --file "$file" "$@" . >>"$log" 2>&1 || fail "$(tail -n 20 "$log")"
}

# --- the image it is based on ------------------------------------------------

# Stands for the official one: Debian, Node.js and npm. How this machine reaches Debian and npm is in it, too.
make_base() {
  say "making $base"
  root=$cache/base
  rm -rf "$root"
  debootstrap --variant=minbase trixie "$root" >>"$log" 2>&1 || cannot "debootstrap failed: $(tail -n 1 "$log")"
  rm -rf "$root"/var/cache/apt/archives/*.deb
  apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90host"
  npm install --global --prefix "$root/usr/local" --loglevel=error --no-audit --no-fund npm@11 >>"$log" 2>&1 ||
    cannot "npm cannot be installed: $(tail -n 1 "$log")"
  install -m 755 node_modules/node/bin/node "$root/usr/local/bin/node"
  host_npm
  tar --create --directory "$root" . | docker import - "$base" >>"$log"
  rm -rf "$root"
}

host_npm() {
  mkdir -p "$root/usr/local/etc"
  for place in globalconfig userconfig; do
    grep -svE '^(prefix|globalconfig|userconfig|nodedir) *=' "$(npm config get $place 2>/dev/null)" || true
  done >"$root/usr/local/etc/npmrc"
  chmod 600 "$root/usr/local/etc/npmrc"
  authorities=$(npm config get cafile 2>/dev/null)
  [ ! -f "$authorities" ] || install -D -m 644 "$authorities" "$root$authorities"
}

# --- words -------------------------------------------------------------------

say() { echo "imagemill: $*" >&2; }
fail() { say "$*"; exit 1; }
cannot() { say "no Docker here: $*"; exit 75; }

main "$@"
