# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
# For an engine without BuildKit: no mounts, so all is installed in a stage that is thrown away, and what it changed is copied from there.
FROM debian:bookworm-slim AS changed
LABEL pipe.stage="of-this-build"
USER 0
COPY host /pipe-build/host
RUN ["/bin/sh", "-c", "touch /pipe-build/start"]
COPY apt /pipe-build/apt
RUN ["/bin/sh", "/pipe-build/apt/install.sh"]
COPY collect /pipe-build/collect
RUN ["/bin/sh", "/pipe-build/collect/collect.sh", "rest"]

FROM debian:bookworm-slim
COPY --from=changed /pipe-changed/rest/ /
