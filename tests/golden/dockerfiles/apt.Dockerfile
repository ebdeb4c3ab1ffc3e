# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
FROM debian:bookworm-slim
RUN --mount=type=bind,source=apt,target=/dev/pipe/apt \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    --mount=type=cache,id=pipe-apt-of-these-writers,target=/dev/pipe/cache,sharing=locked \
    ["/bin/sh", "/dev/pipe/apt/install.sh"]
