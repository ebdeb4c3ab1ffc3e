# Usage: layer.sh uv|pip. Installs the locked packages of one layer, which are in the folder layer/ of the build: wheels in requirements.txt, and what is
# built from source in sources.txt.
[ "$(id -u)" = 0 ] || fail "requirements are installed as root, and the parent image runs as user $(id -u)"
find_python || fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
cd "$build/layer"  # Local packages lie here.
mkdir -p "$cache/tmp"
export TMPDIR="$cache/tmp"  # A file in /tmp would change its time, and so the layer.
installer=$1 caches=yes
set -- --no-deps
! externally_managed || set -- "$@" --break-system-packages
while IFS= read -r argument; do set -- "$@" "$argument"; done <"$here/arguments"
[ ! -e "$build/host/indexes.txt" ] || set -- "$@" -r "$build/host/indexes.txt"
case " $* " in *" --no-cache"*) caches=no ;; esac

# Prints once a second how many bytes have arrived; `pipe` makes its progress of that.
received() {
  all=0
  for count in /sys/class/net/*/statistics/rx_bytes; do read -r bytes <"$count" && all=$((all + bytes)); done 2>/dev/null || :
  echo "$all"
}
watcher=
if [ -e "$build/host/own-network" ]; then
  before=$(received)
  while sleep 1; do echo "pipe: received $(($(received) - before))"; done &
  watcher=$!
fi

# Usage: install FILE FOLDER OPTIONS... FOLDER keeps what is downloaded and built.
install() {
  file=$1 folder=$2
  shift 2
  export UV_CACHE_DIR="$folder/uv" PIP_CACHE_DIR="$folder/pip"
  if [ "$installer" = uv ]; then
    uv=$(command -v uv) || uv=$build/tools/bin/uv
    # uv takes a project for unchanged while its pyproject.toml is.
    grep -q -e ' --hash=' "$file" || while IFS= read -r name; do set -- "$@" --refresh-package "$name"; done <names
    # What the builder's cache has is installed without the index.
    if [ "$caches" = no ] || ! "$uv" pip install --offline --python "$python" "$@" -r "$file" >/dev/null 2>&1; then
      "$uv" pip install --python "$python" "$@" -r "$file"
    fi
  else
    "$python" -m pip --version >/dev/null 2>&1 || export PYTHONPATH="$build/tools"
    if [ "$caches" = yes ]; then
      "$python" -B "$here/pip_install.py" "$folder/files" "$file" "$python" -m pip install --no-compile "$@"
    else
      "$python" -m pip install --no-compile "$@" -r "$file"
    fi
    unset PYTHONPATH
  fi
}
if [ -e requirements.txt ]; then install requirements.txt "$cache" "$@"; fi
# What is compiled may use libraries of the system: each has a folder of its own.
if [ -e sources.txt ]; then install sources.txt "$cache/built/$(cat system.txt)" "$@"; fi
[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || :
set -- names
[ "$caches" = no ] || set -- names "$cache/byte-code"
"$python" -B "$here/finish.py" "$@"
