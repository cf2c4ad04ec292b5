# Functions of the scripts that build the container image with a separate Docker daemon, and test it. debootstrap creates the base
# image once. The images are kept in DOCKER_CACHE (by default below the temporary folder). Everything else is removed when the
# script ends.
. scripts/debian.sh
cache=${DOCKER_CACHE:-${TMPDIR:-/tmp}/imagemill-docker}
log=$cache/log
base=$(sed -n 's/^ARG NODE_IMAGE=//p' docker/Dockerfile)
PATH=$PWD/node_modules/.bin:$PATH
export DOCKER_HOST="unix://$cache/socket"
export DOCKER_CONFIG="$cache/config"
# Use the classic builder, which every Docker package includes. BuildKit is a separate package in some.
export DOCKER_BUILDKIT=0

# Installs and starts Docker, and creates the base image if it is missing.
prepare_docker() {
  needs_root_and_mounts
  # Try twice: the package with the docker command can be unknown until apt-get update has run.
  sh scripts/bootstrap.sh docker || sh scripts/bootstrap.sh docker ||
    { command -v dockerd >/dev/null && exit 1 || cannot 'it could not be installed'; }
  mkdir -p -m 700 "$cache" "$DOCKER_CONFIG"
  : >"$log"
  trap 'status=$?; trap - EXIT; stop_docker; exit $status' EXIT
  trap 'exit 130' INT TERM
  start_docker
  docker image inspect "$base" >/dev/null 2>&1 || make_base
}

# Starts dockerd in its own mount namespace. The only changes to the network of the machine are the bridges of compose, which
# are removed before the daemon stops.
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

# Removes the containers and networks of this run or an earlier one.
remove_all() {
  containers=$(docker ps --all --quiet)
  [ -z "$containers" ] || docker rm --force --volumes $containers >>"$log"
  docker network prune --force >>"$log"
}

stop_docker() {
  if [ -n "${daemon:-}" ] && kill -0 "$daemon" 2>/dev/null; then
    remove_all || true
    kill "$daemon"
    wait "$daemon" || true
  fi
}

build() {
  file=$1
  shift
  say "building $*"
  docker build --network host --file "$file" "$@" . >>"$log" 2>&1 || fail "$(tail -n 20 "$log")"
}

# Builds the image, and stand-ins for others that it runs with: build_images STAND-IN...
build_images() {
  build docker/Dockerfile --target build --tag imagemill-build
  say 'building the image'
  SOURCE=https://example.org/imagemill sh scripts/build-image.sh --network host >>"$log" 2>&1 || fail "$(tail -n 20 "$log")"
  for name in "$@"; do
    build test/container/stand-ins.Dockerfile --target "$name" --tag "imagemill-test-$name"
  done
  docker image prune --force >>"$log"
}

# Creates a stand-in for the official image, with Debian, Node.js and npm. It also gets the apt and npm settings of this
# machine, so that it can reach its package sources.
make_base() {
  say "making $base"
  root=$cache/base
  make_system trixie "$root" "$log"
  rm -rf "$root"/var/cache/apt/archives/*.deb
  npm install --global --prefix "$root/usr/local" --loglevel=error --no-audit --no-fund npm@11 >>"$log" 2>&1 ||
    cannot "npm cannot be installed: $(tail -n 1 "$log")"
  install -m 755 node_modules/node/bin/node "$root/usr/local/bin/node"
  copy_settings "$root" /usr/local/etc/npmrc
  tar --create --directory "$root" . | docker import - "$base" >>"$log"
  rm -rf "$root"
}

say() { echo "imagemill: $*" >&2; }
fail() { say "$*"; exit 1; }
cannot() { say "no Docker here: $*"; exit 75; }
