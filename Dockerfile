# The broker's image: Node and the built package on a base without a shell. docs/deploy.md says how to run it.
#
# The bases are named by tag, because digests differ with each rebuild of the same version; the release workflow looks the digests up,
# builds from those, and the image's provenance names them.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-trixie-slim
ARG BASE_IMAGE=gcr.io/distroless/cc-debian13:nonroot

# JavaScript is the same for every processor, so it is built once, on the processor of the machine that builds.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /source
COPY package.json package-lock.json .npmrc ./
COPY mcp/client/package.json mcp/client/
COPY test/contract/generated/package.json test/contract/generated/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# For /version. There is no git here.
ARG REVISION=unknown
ARG SOURCE_DATE_EPOCH
RUN SOURCE_COMMIT="$REVISION" npm pack --pack-destination /tmp \
 && mkdir /app && tar -xzf /tmp/agent-broker-*.tgz -C /app --strip-components=1 \
 && install -d -m 0700 /data
# What the package depends on at the versions of the lock file. (An install of the package would take newer ones.)
WORKDIR /app
RUN cp /source/package-lock.json . \
 && npm ci --omit=dev --ignore-scripts --workspaces=false --no-audit --no-fund \
 && rm package-lock.json

FROM ${NODE_IMAGE} AS node

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="Agent Broker" \
      org.opencontainers.image.source="https://github.com/agent-broker/agent-broker" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app /app
# A new named volume takes over owner and mode of this folder.
COPY --from=build --chown=65532:65532 /data /data
# "nonroot" of the base; a number, so that Kubernetes can tell that it is not root.
USER 65532:65532
# The key file is outside of the data folder: a copy of the volume must not bring its own key.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8787 \
    AGENT_BROKER_DATA=/data \
    AGENT_BROKER_KEY_FILE=/run/secrets/master.key
VOLUME ["/data"]
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/usr/local/bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/local/bin/node", "/app/bin/agent-broker.js"]
CMD ["serve", "--no-sandbox"]
