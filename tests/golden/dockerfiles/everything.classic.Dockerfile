# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
# For an engine without BuildKit: no mounts, so all is installed in a stage that is thrown away, and what it changed is copied from there.
FROM registry.example:5000/team/base:1.2 AS changed
LABEL pipe.stage="of-this-build"
ENV OMP_NUM_THREADS="1"
USER 0
COPY host /pipe-build/host
RUN ["/bin/sh", "-c", "touch /pipe-build/start"]
COPY apt /pipe-build/apt
RUN ["/bin/sh", "/pipe-build/apt/install.sh"]

FROM changed AS tools
COPY tools /pipe-build/fetch
RUN ["/bin/sh", "/pipe-build/fetch/fetch.sh", "uv", "required"]

FROM changed AS installed
COPY --from=tools /pipe-tools /pipe-build/tools
COPY python /pipe-build/python
RUN ["/bin/sh", "/pipe-build/python/install.sh", "uv"]
COPY project /opt/project
COPY install /pipe-build/install
RUN ["/bin/sh", "/pipe-build/install/install.sh"]
COPY user /pipe-build/user
RUN ["/bin/sh", "/pipe-build/user/create.sh", "learner"]
COPY collect /pipe-build/collect
RUN ["/bin/sh", "/pipe-build/collect/collect.sh", "rest"]

FROM registry.example:5000/team/base:1.2
ENV OMP_NUM_THREADS="1"
COPY --from=installed /pipe-changed/rest/ /
USER learner
