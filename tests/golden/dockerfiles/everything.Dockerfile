# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
FROM registry.example:5000/team/base:1.2 AS system
ENV OMP_NUM_THREADS="1"
RUN --mount=type=bind,source=apt,target=/dev/pipe/apt \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    --mount=type=cache,id=pipe-apt-of-these-writers,target=/dev/pipe/cache,sharing=locked \
    ["/bin/sh", "/dev/pipe/apt/install.sh"]

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
COPY project /opt/project
RUN --mount=type=bind,source=install,target=/dev/pipe/install \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    --mount=type=bind,from=tools,source=/pipe-tools,target=/dev/pipe/tools \
    --mount=type=cache,id=pipe-python-of-these-writers,target=/dev/pipe/cache \
    ["/bin/sh", "/dev/pipe/install/install.sh"]
RUN --mount=type=bind,source=user,target=/dev/pipe/user \
    --mount=type=bind,source=host,target=/dev/pipe/host \
    ["/bin/sh", "/dev/pipe/user/create.sh", "learner"]
USER learner
