# Functions of the scripts that make Debian systems with debootstrap and run commands in them. Each script defines `cannot`,
# which ends it with status 75 (EX_TEMPFAIL of sysexits.h) if this machine cannot do that.

needs_root_and_mounts() {
  [ "$(id -u)" = 0 ] || cannot 'only root can do that'
  unshare --mount true 2>/dev/null || cannot 'this machine allows no mounts'
}

# Makes a system: make_system SUITE ROOT LOG. debootstrap makes each suite once. An archive below the temporary folder keeps it for
# all scripts, of which several may run at once.
make_system() {
  suite=$1 root=$2 log=$3 archive=${TMPDIR:-/tmp}/imagemill-system-$1.tar
  rm -rf "$root"
  mkdir -p "$root"
  (flock 9 && { [ -e "$archive" ] || bootstrap_system; }) 9>"$archive.lock" || cannot "debootstrap failed: $(tail -n 1 "$log")"
  tar -xf "$archive" -C "$root"
}

bootstrap_system() {
  command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends debootstrap >/dev/null; }
  new=$archive.root
  rm -rf "$new"
  mkdir -p "$new/etc/dpkg/dpkg.cfg.d"
  # dpkg does not wait for the disk after each file.
  echo force-unsafe-io >"$new/etc/dpkg/dpkg.cfg.d/unsafe-io"
  debootstrap --variant=minbase "$suite" "$new" >>"$log" 2>&1 && tar -cf "$archive.new" -C "$new" . && rm -rf "$new" &&
    mv "$archive.new" "$archive"
}

# Installs packages in a system, which has the settings of apt: install_packages ROOT PACKAGE...
install_packages() {
  root=$1
  shift
  in_system "$root" DEBIAN_FRONTEND=noninteractive sh -eu -c 'apt-get update -qq
    apt-get install -qq -y --no-install-recommends "$@"' sh "$@" || cannot "these cannot be installed: $*"
}

# Copies this machine's settings of apt and npm into a system, so that it reaches its package sources: copy_settings ROOT NPMRC
copy_settings() {
  apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/90host"
  mkdir -p "$(dirname "$1$2")"
  for place in globalconfig userconfig; do
    grep -svE '^(prefix|globalconfig|userconfig|nodedir) *=' "$(npm config get $place 2>/dev/null)" || true
  done >"$1$2"
  chmod 600 "$1$2"
  authorities=$(npm config get cafile 2>/dev/null)
  [ ! -f "$authorities" ] || install -D -m 644 "$authorities" "$1$authorities"
}

# Runs a command in a system with its own mounts and an empty environment: in_system ROOT COMMAND. Each further mount is a line
# `FOLDER PLACE` in MOUNTS. The mounts and all processes of the command end with it. It cannot mount anything itself.
in_system() {
  IMAGEMILL_ROOT=$1
  shift
  export IMAGEMILL_ROOT IMAGEMILL_MOUNTS="${MOUNTS:-}"
  unshare --mount --pid --fork --kill-child sh -eu -c '
    mount --make-rprivate /
    mount --rbind /dev "$IMAGEMILL_ROOT/dev"
    mount -t proc proc "$IMAGEMILL_ROOT/proc"
    mount --rbind /sys "$IMAGEMILL_ROOT/sys"
    mount -t tmpfs tmpfs "$IMAGEMILL_ROOT/tmp"
    printf "%s" "$IMAGEMILL_MOUNTS" | while read -r folder place; do
      mkdir -p "$folder" "$IMAGEMILL_ROOT$place"
      mount --bind "$folder" "$IMAGEMILL_ROOT$place"
    done
    chroot "$IMAGEMILL_ROOT" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
  ' sh "$@"
}
