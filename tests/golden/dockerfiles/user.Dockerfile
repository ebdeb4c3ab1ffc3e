# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
FROM debian:bookworm-slim
RUN --mount=type=bind,source=user,target=/dev/pipe/user \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    ["/bin/sh", "/dev/pipe/user/create.sh", "1000:100"]
USER 1000:100
