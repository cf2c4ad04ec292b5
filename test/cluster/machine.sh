#!/bin/sh
# Runs the Docker daemon of a machine. machines.ts starts it in new namespaces for the network, mounts, processes and the host name:
#
#   sh machine.sh NAME ADDRESS SERVED GATEWAY FOLDER CGROUP
#
# It has the address ADDRESS and, like 127.0.0.0/8 on any machine, all addresses of the network SERVED.
set -eu
name=$1 address=$2 served=$3 gateway=$4 folder=$5 cgroup=$6
hostname "$name"
# As after a start of a machine, nothing is in /run.
mount -t tmpfs tmpfs /run
# /sys shows the network interfaces of the namespace in which it was mounted.
mkdir /run/cgroup
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
# No name server: downloads of images fail at once, and Docker uses the local ones.
echo 'nameserver 127.0.0.1' >/run/resolv.conf
resolv=$(readlink -m /etc/resolv.conf)
mkdir -p "${resolv%/*}"
[ -e "$resolv" ] || : >"$resolv"
mount --bind /run/resolv.conf "$resolv"
ip address add "$served" dev lo
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip address add "$address/16" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
exec dockerd --host "unix://$folder/socket" --data-root "$folder/data" --exec-root /run/docker --pidfile /run/docker.pid \
  --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$cgroup"
