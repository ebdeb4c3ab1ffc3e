# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
FROM python:3.12-slim AS system

FROM system AS tools
RUN --mount=type=bind,source=tools,target=/dev/pipe/fetch \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    --mount=type=cache,id=pipe-files,target=/dev/pipe/cache \
    ["/bin/sh", "/dev/pipe/fetch/fetch.sh", "uv", "required"]

FROM system
RUN --mount=type=bind,source=python,target=/dev/pipe/python \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    --mount=type=bind,from=tools,source=/pipe-tools,target=/dev/pipe/tools \
    --mount=type=cache,id=pipe-python-of-these-writers,target=/dev/pipe/cache \
    ["/bin/sh", "/dev/pipe/python/install.sh", "uv"]
