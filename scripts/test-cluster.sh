#!/bin/sh
# Builds docker/Dockerfile and runs test/cluster/: docker/swarm.yaml on three machines, under load.
#
#   sudo sh scripts/test-cluster.sh [arguments for mocha]
#   sudo sh scripts/test-cluster.sh sizing
#
# `sizing` measures the throughput of one to three instances instead (docs/sizing.md). This takes a quarter of an hour.
# Each machine is a Docker daemon in namespaces of its own. All of them are within one process namespace, so that they end with it,
# however the script ends. Exits with 75 (EX_TEMPFAIL of sysexits.h) if this machine cannot do that.
set -eu
cd "$(dirname "$0")/.."
. scripts/docker.sh
archive=$cache/cluster.tar
folder=$cache/cluster
cgroup=imagemill-cluster

main() {
  [ "$(id -u)" = 0 ] || cannot 'only root can do that'
  unshare --net --uts --pid --mount --fork --mount-proc \
    sh -c 'ip link add lan type bridge && ip link add overlay type vxlan id 1 dstport 4789' 2>/dev/null ||
    cannot 'this machine allows no namespaces, no network bridges or no VXLAN, or the package iproute2 is missing'
  prepare_docker
  build_images nginx valkey
  image=imagemill:$(node -p "require('./package.json').version")
  for name in next broken; do
    build test/cluster/images.Dockerfile --target $name --tag imagemill-test-$name --build-arg "IMAGE=$image"
  done
  save_images "$image" imagemill-test-next imagemill-test-broken imagemill-test-nginx imagemill-test-valkey
  stop_docker
  unset DOCKER_HOST
  trap 'status=$?; trap - EXIT; remove_cluster; exit $status' EXIT
  remove_cluster
  mkdir -p "$folder"
  export CLUSTER_FOLDER="$folder" CLUSTER_CGROUP="/$cgroup" CLUSTER_IMAGES="$archive"
  case ${1:-} in
    sizing) set -- node test/cluster/sizing.ts ;;
    *) set -- mocha --exit --no-parallel --reporter spec "$@" test/cluster/swarm.ts ;;
  esac
  # In the background, since the shell handles signals only while it waits.
  unshare --net --mount --pid --fork --kill-child --mount-proc "$@" &
  tests=$!
  status=0
  wait $tests || status=$?
  tests=
  exit $status
}

# Saves the images in one archive, unless it has them already.
save_images() {
  ids=$(docker image inspect --format '{{.Id}}' "$@")
  [ "$ids" != "$(cat "$archive.ids" 2>/dev/null)" ] || return 0
  say 'saving the images'
  docker save --output "$archive" "$@"
  echo "$ids" >"$archive.ids"
}

# Ends the machines, and removes their files. Processes of a namespace can use their control groups for a moment after its end.
remove_cluster() {
  [ -z "${tests:-}" ] || kill -KILL "$tests" 2>/dev/null || true
  while [ -n "$(find /sys/fs/cgroup -type d -name $cgroup)" ]; do
    find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || sleep 0.1
  done
  rm -rf "$folder"
}

main "$@"
