#!/bin/sh
# Builds the container image, with labels of the checkout and of the base image. Arguments go to docker build:
#
#   npm run image -- --build-arg EXTRA_FORMATS=
#
# SOURCE and DOCUMENTATION are the addresses of the source code and its documentation, by default those of git's `origin`.
set -eu
cd "$(dirname "$0")/.."
base=$(sed -n 's/^ARG NODE_IMAGE=//p' docker/Dockerfile)
docker image inspect "$base" >/dev/null 2>&1 || docker pull "$base"
digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$base" | sed -n '1s/.*@//p')
# Without a user name and password, which the address of a remote can contain.
origin=$(git remote get-url origin 2>/dev/null | sed -n 's#^\(https://\)\([^/]*@\)\{0,1\}#\1#p')
source=${SOURCE:-$origin}
exec docker build --file docker/Dockerfile --tag "imagemill:$(node -p "require('./package.json').version")" \
  --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  --build-arg "SOURCE=${source:-unknown}" --build-arg "DOCUMENTATION=${DOCUMENTATION:-${source:-unknown}}" \
  --build-arg "BASE_DIGEST=${digest:-unknown}" "$@" .
