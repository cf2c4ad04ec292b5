#!/bin/sh
# Rebuilds the container image, and gives it the name of the image in use if both convert the images of a folder alike:
#
#   sh docker/upgrade-check.sh FOLDER [options of imagemill regress record]
#
# PRESENT is the image in use, by default that of docker/compose.yaml. CANDIDATE is the image to check; without it, a new one is
# built. ENV_FILE is a file with settings for both. The image that was in use keeps a name that ends in -before.
#
# Exit status: 0 if the candidate took the place of the present image; 1 if a result changed; 2 if the comparison was not
# possible. With 1 and 2, no name has changed.
set -eu
[ $# -gt 0 ] && folder=$(cd "$1" && pwd) || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
shift
cd "$(dirname "$0")/.."
present=${PRESENT:-$(sed -n 's/^ *image: \(imagemill:.*\)/\1/p' docker/compose.yaml)}
candidate=${CANDIDATE:-imagemill:candidate}
network=imagemill-upgrade-$$
baseline=$(mktemp -d)

main() {
  trap remove_all EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  [ -n "${CANDIDATE:-}" ] ||
    docker build --pull --no-cache --file docker/Dockerfile --tag "$candidate" . || cannot 'the image cannot be built'
  docker network create --internal "$network" >/dev/null || cannot 'no network'
  start present "$present"
  start candidate "$candidate"
  wait_until_healthy present
  wait_until_healthy candidate
  status=0
  regress record /images --url http://present:3000 --to /baseline/results "$@" || cannot 'the present image converts nothing'
  regress check /images --url http://candidate:3000 --against /baseline/results || status=$?
  case $status in
    0) ;;
    1) say "$candidate does not replace $present"; exit 1 ;;
    *) cannot "the comparison ended with status $status" ;;
  esac
  docker tag "$present" "$present-before" && docker tag "$candidate" "$present" || cannot 'the images cannot be named'
  say "$candidate is $present now"
}

# Runs imagemill regress. The present image judges: it has passed the same check.
regress() {
  docker run --rm --network "$network" --user "$(id -u):0" --volume "$folder:/images:ro" --volume "$baseline:/baseline" \
    "$present" regress "$@"
}

# Starts a server that the comparison reaches by a host name, without access to other networks.
start() {
  docker run --detach --name "$network-$1" --network "$network" --network-alias "$1" \
    --read-only --tmpfs /tmp:size=1g,mode=1777 --cap-drop ALL --security-opt no-new-privileges --pids-limit 256 \
    ${ENV_FILE:+--env-file "$ENV_FILE"} --env RATE_LIMIT_PER_MINUTE=0 "$2" >/dev/null || cannot "$2 does not start"
}

wait_until_healthy() {
  for _ in $(seq 60); do
    case $(docker inspect --format '{{.State.Health.Status}}' "$network-$1") in
      healthy) return ;;
      starting) sleep 1 ;;
      *) break ;;
    esac
  done
  docker logs "$network-$1" >&2 || true
  cannot "the server of the $1 image is not healthy"
}

remove_all() {
  docker rm --force --volumes "$network-present" "$network-candidate" >/dev/null 2>&1 || true
  docker network rm "$network" >/dev/null 2>&1 || true
  rm -rf "$baseline"
}

say() { echo "imagemill: $*" >&2; }
cannot() { say "$*"; exit 2; }

main "$@"
