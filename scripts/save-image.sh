#!/bin/sh
# Saves an image of Docker as an OCI archive: sh scripts/save-image.sh IMAGE FILE
set -eu
archive=$(mktemp)
trap 'rm "$archive"' EXIT
docker save --output "$archive" "$1"
skopeo --insecure-policy copy --quiet "docker-archive:$archive" "oci-archive:$2:$1"
