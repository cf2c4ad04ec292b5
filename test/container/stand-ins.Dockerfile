# Stand-ins from Debian packages for the images that docker/compose.yaml pulls, and an image with Docker Compose.
ARG NODE_IMAGE=node:24-trixie-slim

FROM ${NODE_IMAGE} AS nginx
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light && rm -rf /var/lib/apt/lists/*

FROM ${NODE_IMAGE} AS valkey
RUN apt-get update && apt-get install -y --no-install-recommends valkey-server && rm -rf /var/lib/apt/lists/*

FROM ${NODE_IMAGE} AS compose
RUN apt-get update && apt-get install -y --no-install-recommends docker-compose && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["docker-compose"]
