#!/bin/sh
# Follows the README and docs/deployment.md in a minimal Debian 12 and a minimal Debian 13, which have only Debian's nodejs and
# npm, git and curl, with the last commit of this checkout:
#
#   sudo sh scripts/test-bare.sh [bookworm|trixie]
#
# debootstrap creates each system once. BARE_CACHE (by default below the temporary folder) keeps it, and what apt and npm
# download. `npm test` runs only TESTS beside the unit tests. Exits with 75 if this machine cannot do that.
set -eu
cd "$(dirname "$0")/.."
. scripts/debian.sh
cache=${BARE_CACHE:-${TMPDIR:-/tmp}/imagemill-bare}
packages='nodejs npm git curl ca-certificates'
# Tests that depend on the versions of Debian's tools.
tests='test/docker/systemd.test.ts test/process/fork-server/fork-server.test.ts test/service/identify.test.ts test/service/reasons.test.ts'

main() {
  needs_root_and_mounts
  mkdir -p -m 700 "$cache"
  trap 'rm -rf "$cache"/run-$$-*' EXIT
  trap 'exit 130' INT TERM
  failed=0
  for suite in ${1:-bookworm trixie}; do
    test_suite "$suite" >"$cache/$suite.log" 2>&1 &
    eval "job_$suite=\$!"
  done
  for suite in ${1:-bookworm trixie}; do
    status=0
    eval "wait \$job_$suite" || status=$?
    [ $status = 0 ] || { tail -n 60 "$cache/$suite.log" >&2; failed=$status; }
    say "$suite: status $status, $(tail -n 1 "$cache/$suite.log")"
  done
  exit $failed
}

test_suite() {
  suite=$1
  root=$cache/run-$$-$suite
  MOUNTS="$cache/debs-$suite /var/cache/apt/archives
$cache/npm /root/.npm
"
  [ "$(cat "$cache/$suite.made" 2>/dev/null)" = "$packages" ] || make_archive
  rm -rf "$root" && mkdir "$root"
  tar -xf "$cache/$suite.tar" -C "$root"
  copy_settings "$root" /root/.npmrc
  git init --quiet --bare --initial-branch=main "$root/srv/imagemill.git"
  git push --quiet "$root/srv/imagemill.git" HEAD:refs/heads/main
  in_system "$root" TESTS="${TESTS:-$tests}" MAY_SKIP="mounts,${MAY_SKIP:-}" sh -eu -c "$follow_documents"
}

make_archive() {
  make_system "$suite" "$root" "$cache/$suite.debootstrap.log"
  copy_settings "$root" /root/.npmrc
  # The settings can name more certificates than the package ca-certificates has.
  in_system "$root" DEBIAN_FRONTEND=noninteractive sh -eu -c "apt-get update -qq
    apt-get install -qq -y --no-install-recommends $packages" || cannot 'the packages cannot be installed'
  tar -cf "$cache/$suite.tar" -C "$root" .
  echo "$packages" >"$cache/$suite.made"
}

# Runs inside of the system.
follow_documents='
step() { echo "imagemill: $(($(cut -d. -f1 /proc/uptime) - began)) s: $*"; }
clean() { [ -z "$(git status --porcelain)" ] || { git status; git diff | head -n 40; echo "changed by: $*"; exit 1; }; }
documented() { grep -m 1 "^$1" "$2" || { echo "$2 has no command $1"; exit 1; }; }
run() {
  step "$1"
  sh -c "$1" >/tmp/output 2>&1 || { cat /tmp/output; exit 1; }
  cat /tmp/output
  clean "$1"
}
began=$(cut -d. -f1 /proc/uptime)
git clone --quiet /srv/imagemill.git /opt/imagemill
cd /opt/imagemill

start=$(documented "npm start" README.md)
step "$start"
PORT=0 HOST=127.0.0.1 setsid sh -c "$start" >/tmp/log 2>&1 &
server=$!
until grep -q "listening on" /tmp/log; do
  kill -0 $server || { cat /tmp/log; exit 1; }
  sleep 0.5
done
address=$(sed -n "s|.*listening on http://\([0-9.:]*\).*|\1|p" /tmp/log)
step "convert with $address"
sh -c "$(documented "curl -F" README.md | sed "s|-o scene.webp localhost:3000|-o /tmp/scene.webp $address|") --fail"
clean "$start"
kill -- -$server && wait $server || true

run "$(documented "npm test" README.md)"
step "look at the result"
/usr/bin/python3 -c "
from PIL import Image, ImageChops, ImageStat
result, source = (Image.open(name).convert(\"RGB\") for name in (\"/tmp/scene.webp\", \"fixtures/images/scene.png\"))
assert result.size == source.size, result.size
difference = max(ImageStat.Stat(ImageChops.difference(result, source)).mean)
assert difference < 8, difference"

run "$(documented "sh scripts/bootstrap.sh production" docs/deployment.md)"
run "$(documented "useradd" docs/deployment.md)"
run "$(documented "install -m 640" docs/deployment.md)"
run "$(documented "./node dist/main.js doctor" docs/deployment.md)"
grep "/etc/imagemill.env" /tmp/output
run "git pull --quiet"
step "all commands worked"
'

say() { echo "imagemill: $*" >&2; }
cannot() { say "cannot run a minimal Debian: $*"; exit 75; }

main "$@"
