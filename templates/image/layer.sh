# Usage: layer.sh uv|pip [build]. Installs the locked packages of one layer, which are in the folder layer/ of the build: wheels in requirements.txt, and what
# is built from source in sources.txt. `build` makes wheels of the sources instead, in /pipe-built: a stage of its own, where no package is installed.
[ "$(id -u)" = 0 ] || fail "requirements are installed as root, and the parent image runs as user $(id -u)"
find_python || fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
cd "$build/layer"  # Local packages lie here.
# These folders are removed at the end of this script: other builds write to the cache, and a file in /tmp would change the time of /tmp, and so the layer.
export TMPDIR="$build/layer/tmp" UV_CACHE_DIR="$build/layer/uv" PIP_CACHE_DIR="$build/layer/pip"
mkdir -p "$TMPDIR"
installer=$1 task=${2-install} store=$cache/files
set -- --no-deps
! externally_managed || set -- "$@" --break-system-packages
while IFS= read -r argument; do set -- "$@" "$argument"; done <"$here/arguments"
[ ! -e "$build/host/indexes.txt" ] || set -- "$@" -r "$build/host/indexes.txt"
case " $* " in *" --no-cache"*) store=- ;; esac

# Prints the number of bytes that all network interfaces have received. `pipe` shows the progress of downloads from the lines `pipe: received ...` below.
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

# Usage: install FILE OPTIONS...
install() {
  file=$1
  shift
  if [ "$installer" = uv ]; then
    uv=$(command -v uv) || uv=$build/tools/bin/uv
    set -- "$uv" pip install --python "$python" "$@"
  else
    "$python" -m pip --version >/dev/null 2>&1 || export PYTHONPATH="$build/tools"
    set -- "$python" -m pip install --no-compile "$@"
  fi
  "$python" -B "$here/install_locked.py" "$task" "$store" "$built" "$file" "$@"
  unset PYTHONPATH
}
built=$build/built
[ "$task" = install ] || { built=/pipe-built && mkdir -p "$built"; }
if [ -e requirements.txt ]; then install requirements.txt "$@"; fi
if [ -e sources.txt ]; then install sources.txt "$@"; fi
[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || :
[ "$task" = build ] || "$python" -B "$here/finish.py" names
rm -rf "$build/layer/tmp" "$build/layer/uv" "$build/layer/pip"
