#!/bin/sh
# Tests imagemill in a minimal Debian 12 and a minimal Debian 13: installs the Debian package of this checkout in systems that have
# only curl in addition, and follows the README, with the last commit, in systems with Debian's nodejs and npm, git and curl.
#
#   sudo sh scripts/test-bare.sh [bookworm|trixie]
#
# debootstrap creates each system once. BARE_CACHE (by default below the temporary folder) keeps it, and what apt and npm
# download. PARTS is `package`, `readme`, or by default both. `npm test` runs only TESTS beside the unit tests, of which one
# runs in the Debian that this machine has. Exits with 75 if this machine cannot do that.
set -eu
cd "$(dirname "$0")/.."
. scripts/debian.sh
cache=${BARE_CACHE:-${TMPDIR:-/tmp}/imagemill-bare}
packages='nodejs npm git curl ca-certificates'
parts=${PARTS:-package readme}
# Tests that depend on the versions of Debian's tools.
tests='test/docker/systemd.test.ts test/process/fork-server/fork-server.test.ts test/service/identify.test.ts test/service/reasons.test.ts'

main() {
  needs_root_and_mounts
  mkdir -p -m 700 "$cache"
  trap 'rm -rf "$cache"/run-$$-*' EXIT
  trap 'exit 130' INT TERM
  failed=0
  case $parts in *package*) make_packages ;; esac
  for suite in ${1:-bookworm trixie}; do
    test_suite "$suite" >"$cache/$suite.log" 2>&1 &
    eval "job_$suite=\$!"
  done
  for suite in ${1:-bookworm trixie}; do
    status=0
    eval "wait \$job_$suite" || status=$?
    [ $status = 0 ] || tail -n 60 "$cache/$suite.log" >&2
    # CI can permit status 75, so it must not replace a failure.
    case $failed-$status in *-0 | [1-9]*-75) ;; *) failed=$status ;; esac
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
  [ "$(cat "$cache/$suite.made" 2>/dev/null)" = "$packages" ] && [ -e "$cache/$suite-minimal.tar" ] || make_archives
  case $parts in *package*) test_package ;; esac
  case $parts in *readme*) test_readme ;; esac
}

# Builds the package, and that of the commit before with a lower version, to upgrade from. They are the same for both systems.
make_packages() {
  packages_folder=$cache/run-$$-packages
  mkdir "$packages_folder"
  old=$packages_folder/old
  # The folder of the older package is no checkout.
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  package=$(build_package .)
  cp "$package" fixtures/images/scene.png "$packages_folder"
  mkdir "$old"
  # A shallow clone has no commit before.
  git archive "$(git rev-parse --verify --quiet HEAD~1 || git rev-parse HEAD)" | tar -x -C "$old"
  cp -al node_modules "$old" 2>/dev/null || cp -a node_modules "$old"
  dpkg-deb --raw-extract "$(export DRAFT=yes; build_package "$old")" "$old/package"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$old/package/DEBIAN/control"
  echo '# a comment of the older version' >>"$old/package/etc/imagemill/imagemill.env"
  dpkg-deb -Znone --root-owner-group --build "$old/package" "$packages_folder/imagemill_0.0.1.deb" >/dev/null
  rm -r "$old"
}

# Builds the package of a folder, and prints its path.
build_package() (
  cd "$1"
  sh scripts/bootstrap.sh package >&2
  sh scripts/build-deb.sh
)

test_package() {
  fresh_system "$suite-minimal.tar"
  cp "$packages_folder"/* "$root/srv"
  in_system "$root" sh -eu -c "$common_functions$use_package"
  same_picture "$root/srv/scene.webp" && same_picture "$root/srv/own.webp"
}

test_readme() {
  fresh_system "$suite.tar"
  git init --quiet --bare --initial-branch=main "$root/srv/imagemill.git"
  git push --quiet "$root/srv/imagemill.git" HEAD:refs/heads/main
  # The unit tests, which need only Node.js, run in the Debian of this machine with its own `npm test`.
  units=$(. /etc/os-release && [ "${VERSION_CODENAME-}" != "$suite" ] || echo test/base/text.test.ts)
  in_system "$root" UNIT_TESTS="$units" TESTS="${TESTS:-$tests}" MAY_SKIP="mounts,${MAY_SKIP:-}" sh -eu -c "$common_functions$follow_readme"
  same_picture "$root/srv/scene.webp"
}

fresh_system() {
  rm -rf "$root" && mkdir "$root"
  tar -xf "$cache/$1" -C "$root"
  copy_settings "$root" /root/.npmrc
}

# Compares a result with its source, as another library decodes them.
same_picture() {
  /usr/bin/python3 -c '
import sys
from PIL import Image, ImageChops, ImageStat
result, source = (Image.open(name).convert("RGB") for name in (sys.argv[1], "fixtures/images/scene.png"))
assert result.size == source.size, result.size
difference = max(ImageStat.Stat(ImageChops.difference(result, source)).mean)
assert difference < 8, difference' "$1"
}

make_archives() {
  make_system "$suite" "$root" "$cache/$suite.debootstrap.log"
  copy_settings "$root" /root/.npmrc
  install_packages "$root" curl
  tar -cf "$cache/$suite-minimal.tar" -C "$root" .
  # The settings can name more certificates than the package ca-certificates has.
  install_packages "$root" $packages
  tar -cf "$cache/$suite.tar" -C "$root" .
  echo "$packages" >"$cache/$suite.made"
}

# Functions inside of the systems.
common_functions='
began=$(cut -d. -f1 /proc/uptime)
step() { echo "imagemill: $(($(cut -d. -f1 /proc/uptime) - began)) s: $*"; }
# Sets `address` to that of the service with the process $server, whose log is in /tmp/log.
wait_for_service() {
  until grep -q "listening on" /tmp/log; do
    kill -0 $server || { cat /tmp/log; exit 1; }
    sleep 0.2
  done
  address=$(sed -n "s|.*listening on http://\([0-9.:]*\).*|\1|p" /tmp/log)
}
'

use_package='
# The commands keep a cache for their user, which is not part of the package.
export DEBIAN_FRONTEND=noninteractive HOME=/srv
settings=/etc/imagemill/imagemill.env
package=$(echo /srv/imagemill_*_*.deb)
install() { apt-get install -qq -y -o Dpkg::Options::=--force-confold "$@" >/tmp/output 2>&1 || { cat /tmp/output; exit 1; }; }
of_unit() { sed -n "s/^$1=//p" /lib/systemd/system/imagemill.service; }
# Runs the command line of the unit as its user, with its environment and settings, and those of the arguments.
serve() {
  cd "$(of_unit WorkingDirectory)"
  exec env -i PATH=/usr/bin:/bin $(of_unit Environment) $(grep "^[A-Z]" "$(of_unit EnvironmentFile | sed "s/^-//")") "$@" \
    setpriv --reuid="$(of_unit User)" --regid="$(of_unit Group)" --clear-groups --no-new-privs $(of_unit ExecStart)
}
expect_failure() {
  expected=$1 status=0
  shift
  (serve "$@") >/tmp/failure 2>&1 || status=$?
  cat /tmp/failure
  [ $status = $expected ] || { echo "$*: status $status"; exit 1; }
}

apt-get update -qq
install --download-only "$package"
step "install"
install "$package"
step "installed, $(dpkg-query -W -f "\${Installed-Size}" imagemill) KiB"
version=$(dpkg-query -W -f "\${Version}" imagemill)
[ "$(imagemill --version)" = "$version" ]
for page in man1/imagemill.1 man5/imagemill.env.5; do zgrep -q "^.TH .* \"imagemill $version\"$" /usr/share/man/$page.gz; done
[ "$(stat -c "%a %U:%G" $settings)" = "640 root:imagemill" ]
grep -qx HOST=127.0.0.1 $settings
if command -v npm git cc; then exit 1; fi
systemd-analyze --man=no verify /lib/systemd/system/imagemill.service

sed -i "s/^#PORT=.*/PORT=0/" $settings
mkdir -m 700 /run/imagemill
chown imagemill:imagemill /run/imagemill
(serve) >/tmp/log 2>&1 &
server=$!
wait_for_service
curl --silent --show-error --fail -F file=@/srv/scene.png -F format=webp -o /srv/scene.webp $address/api/v1/convert
step "first picture, of $address"
curl --silent --fail $address/ | grep -q "<title>"
curl --silent --fail $address/readyz
echo
expect_failure 1 PORT=${address#*:}
grep -q "another program uses this port" /tmp/failure
expect_failure 2 PORT=x MAX_PIXELS=y
[ "$(grep -c "PORT=\|MAX_PIXELS=" /tmp/failure)" = 2 ]
kill $server && wait $server || true
step "doctor and convert"
imagemill doctor | tee /tmp/output
if grep "^warn\|^fail" /tmp/output; then exit 1; fi
step "attacks, as the user of the service"
setpriv --reuid=imagemill --regid=imagemill --clear-groups imagemill doctor --attack | tee /tmp/output
grep -q "^ 40 of 40 stopped: " /tmp/output
if grep "^ !" /tmp/output; then exit 1; fi
imagemill convert /srv/scene.png /srv/own.webp

step "downgrade, upgrade, remove and purge"
install --allow-downgrades /srv/imagemill_0.0.1.deb
install "$package"
apt-get remove -qq -y imagemill >/dev/null
grep -qx PORT=0 $settings
[ "$(stat -c "%a %U:%G" $settings)" = "640 root:imagemill" ]
[ ! -e /usr/bin/imagemill ] && [ ! -e /usr/lib/imagemill ]
apt-get purge -qq -y imagemill >/dev/null
rm -r /run/imagemill
left=$(find / -xdev -path "*imagemill*" ! -path "/srv/*" ! -path "/var/cache/apt/*")
[ -z "$left" ] || { echo "purge left: $left"; exit 1; }
step "all commands worked"
'

follow_readme='
clean() { [ -z "$(git status --porcelain)" ] || { git status; git diff | head -n 40; echo "changed by: $*"; exit 1; }; }
documented() { grep -m 1 "^$1" "$2" || { echo "$2 has no command $1"; exit 1; }; }
run() {
  step "$1"
  sh -c "$1" >/tmp/output 2>&1 || { cat /tmp/output; exit 1; }
  cat /tmp/output
  clean "$1"
}
git clone --quiet /srv/imagemill.git /opt/imagemill
cd /opt/imagemill

start=$(documented "npm start" README.md)
step "$start"
PORT=0 HOST=127.0.0.1 setsid sh -c "$start" >/tmp/log 2>&1 &
server=$!
wait_for_service
step "convert with $address"
sh -c "$(documented "curl -F" README.md | sed "s|-o scene.webp localhost:3000|-o /srv/scene.webp $address|") --fail"
clean "$start"
kill -- -$server && wait $server || true

run "$(documented "npm test" README.md)"
run "node_modules/.bin/node dist/main.js doctor"
run "node_modules/.bin/node dist/main.js doctor --attack"
# The last part of the command: the commands above have installed and built. Node.js of Debian is too old for it.
installation=$(documented "npm ci" docs/deployment.md)
run "PATH=$PWD/.node/node_modules/.bin:\$PATH ${installation##*&& }"
git push --quiet origin "$(git -c user.name=x -c user.email=x@example.com commit-tree -p HEAD -m new "HEAD^{tree}"):refs/heads/main"
run "git pull --quiet"
[ "$(git log -1 --format=%s)" = new ]
step "all commands worked"
'

say() { echo "imagemill: $*" >&2; }
cannot() { say "cannot run a minimal Debian: $*"; exit 75; }

main "$@"
