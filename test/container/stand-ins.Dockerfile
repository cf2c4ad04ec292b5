# What docker/compose.yaml takes from elsewhere, made of Debian's packages, and a Docker Compose.
ARG NODE_IMAGE=node:24-trixie-slim

FROM ${NODE_IMAGE} AS nginx
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light && rm -rf /var/lib/apt/lists/*

FROM ${NODE_IMAGE} AS valkey
RUN apt-get update && apt-get install -y --no-install-recommends valkey-server && rm -rf /var/lib/apt/lists/*

FROM ${NODE_IMAGE} AS compose
RUN apt-get update && apt-get install -y --no-install-recommends docker-compose && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["docker-compose"]
