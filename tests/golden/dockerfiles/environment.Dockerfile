# Made by pipe; `pipe render` prints it, --template-dir replaces its template.
FROM debian:bookworm-slim
ENV A="1"
ENV B="two words"
