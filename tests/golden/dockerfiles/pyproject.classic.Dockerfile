# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
# For an engine without BuildKit: no mounts, so all is installed in a stage that is thrown away, and what it changed is copied from there.
FROM python:3.12-slim AS changed
LABEL pipe.stage="of-this-build"
USER 0
COPY host /pipe-build/host
RUN ["/bin/sh", "-c", "touch /pipe-build/start"]

FROM changed AS tools
COPY tools /pipe-build/fetch
RUN ["/bin/sh", "/pipe-build/fetch/fetch.sh", "uv", "required"]

FROM changed AS installed
COPY --from=tools /pipe-tools /pipe-build/tools
COPY python /pipe-build/python
RUN ["/bin/sh", "/pipe-build/python/install.sh", "uv"]
COPY collect /pipe-build/collect
RUN ["/bin/sh", "/pipe-build/collect/collect.sh", "rest"]

FROM python:3.12-slim
COPY --from=installed /pipe-changed/rest/ /
