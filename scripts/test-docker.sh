#!/bin/sh
# Builds docker/Dockerfile and runs test/container/ on the image, with a separate Docker daemon:
#
#   sudo sh scripts/test-docker.sh [arguments for mocha]
#
# Exits with 75 (EX_TEMPFAIL of sysexits.h) if this machine cannot do that.
set -eu
cd "$(dirname "$0")/.."
. scripts/docker.sh
prepare_docker
build_images nginx valkey compose
mocha "$@" 'test/container/*.ts'
