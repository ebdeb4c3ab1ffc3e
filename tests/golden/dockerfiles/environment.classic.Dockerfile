# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
# For an engine without BuildKit: no mounts, so all is installed in a stage that is thrown away, and what it changed is copied from there.
FROM debian:bookworm-slim
ENV A="1"
ENV B="two words"
