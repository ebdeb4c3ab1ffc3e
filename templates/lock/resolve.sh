# Usage: resolve.sh uv|pip. Runs in a container of the parent image, with a volume at $build/cache that keeps the installer. The caches of uv and pip are not kept:
# packages that are built to learn their requirements could have written to them.
export UV_CACHE_DIR=/tmp/pipe-uv PIP_CACHE_DIR=/tmp/pipe-pip
find_python || fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
uv=
if [ "$1" = uv ] && ! uv=$(command -v uv); then
  /bin/sh "$build/fetch/fetch.sh" uv required >"$here/log" 2>&1 || { cat "$here/log" >&2; exit 1; }
  uv=/pipe-tools/bin/uv
fi
if [ "$1" = pip ] && ! "$python" -m pip --version >/dev/null 2>&1; then
  /bin/sh "$build/fetch/fetch.sh" pip required >/dev/null 2>"$here/log" || { cat "$here/log" >&2; exit 1; }
  export PYTHONPATH=/pipe-tools
fi
export PIPE_UV="$uv"
if [ -e "$here/apt_packages" ]; then
  set -- "$here"
  while IFS= read -r name; do set -- "$@" "$name"; done <"$here/apt_packages"
  shift
  dpkg-query -W -f 'pipe-apt: ${Package}=${Version}\n' "$@" 2>/dev/null || :
fi
cd "$here/files"
exec "$python" "$here/resolve.py" "$here"
