# syntax=docker/dockerfile:1
# Builds the images of Quittance: "docker build ." for your own PostgreSQL, "--target embedded" with the embedded PostgreSQL.
# See docs/guides/install.md.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# What is installed is what npm would install: the package, and its dependencies as they are locked.
RUN npm pack --silent && mkdir /app && tar -xzf quittance-*.tgz -C /app --strip-components=1 && cp package-lock.json /app/
WORKDIR /app
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev --omit=optional

FROM build AS build-embedded
# The links of PostgreSQL's libraries, which an npm package cannot hold; later nothing can be written here.
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev && node --input-type=module --eval \
    "await (await import('/app/dist/core/store/embedded/binaries.js')).findBinaries({ user: undefined, sharedDir: '/tmp', log: console })"

# Node.js, the libraries that it is linked with, and a user: nothing else is needed, and nothing else can be run.
FROM ${DEBIAN_IMAGE} AS root
COPY --from=build /usr/local/bin/node /root-fs/usr/local/bin/node
RUN set -eu; for file in $(ldd /root-fs/usr/local/bin/node | grep -o '/[^ ]*'); do \
      mkdir -p "/root-fs$(dirname "$file")"; cp -L "$file" "/root-fs$file"; \
    done; \
    mkdir -p /root-fs/etc /root-fs/data /root-fs/backups /root-fs/tmp; \
    echo 'quittance:x:10001:10001:Quittance:/data:/usr/sbin/nologin' > /root-fs/etc/passwd; \
    echo 'quittance:x:10001:' > /root-fs/etc/group; \
    chmod 0700 /root-fs/data /root-fs/backups; chmod 1777 /root-fs/tmp; chown 10001:10001 /root-fs/data /root-fs/backups

FROM ${DEBIAN_IMAGE} AS embedded
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build-embedded /app /app
RUN groupadd --gid 10001 quittance && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home quittance \
    && install -d -m 0700 -o 10001 -g 10001 /data /backups
USER 10001:10001
ENV NODE_ENV=production QUITTANCE_DATA_DIR=/data QUITTANCE_HOST=0.0.0.0
WORKDIR /app
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["/usr/local/bin/node", "/app/deploy/docker/health.js"]
ENTRYPOINT ["/usr/local/bin/node", "/app/bin/quittance.js"]
CMD ["start"]

FROM scratch AS quittance
COPY --from=root /root-fs /
COPY --from=build /app /app
USER 10001:10001
ENV NODE_ENV=production QUITTANCE_DATA_DIR=/data QUITTANCE_HOST=0.0.0.0
WORKDIR /app
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["/usr/local/bin/node", "/app/deploy/docker/health.js"]
ENTRYPOINT ["/usr/local/bin/node", "/app/bin/quittance.js"]
CMD ["start"]
