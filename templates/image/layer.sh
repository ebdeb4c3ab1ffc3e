# Usage: layer.sh uv|pip. Installs the locked packages of one layer, which are in the folder layer/ of the build.
[ "$(id -u)" = 0 ] || fail "requirements are installed as root, and the parent image runs as user $(id -u)"
find_python || fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
cd "$build/layer"  # Local packages lie here.
mkdir -p "$cache/tmp"
export TMPDIR="$cache/tmp"  # A file in /tmp would change its time, and so the layer.
installer=$1
set -- --no-deps
! externally_managed || set -- "$@" --break-system-packages
while IFS= read -r argument; do set -- "$@" "$argument"; done <"$here/arguments"
[ ! -e "$build/host/indexes.txt" ] || set -- "$@" -r "$build/host/indexes.txt"

if [ "$installer" = uv ]; then
  uv=$(command -v uv) || uv=$build/tools/bin/uv
  # uv takes a project for unchanged while its pyproject.toml is.
  grep -q -e ' --hash=' requirements.txt || while IFS= read -r name; do set -- "$@" --refresh-package "$name"; done <names
  # What the builder's cache has is installed without the index.
  case " $* " in
    *" --no-cache"*) false ;;
    *) "$uv" pip install --offline --python "$python" "$@" -r requirements.txt >/dev/null 2>&1 ;;
  esac || "$uv" pip install --python "$python" "$@" -r requirements.txt
else
  "$python" -m pip --version >/dev/null 2>&1 || export PYTHONPATH="$build/tools"
  case " $* " in
    *" --no-cache"*) "$python" -m pip install --no-compile "$@" -r requirements.txt ;;
    *) "$python" -B "$here/pip_install.py" "$cache/files" requirements.txt "$python" -m pip install --no-compile "$@" ;;
  esac
  unset PYTHONPATH
fi
store=$cache/byte-code
case " $* " in *" --no-cache"*) store=$(mktemp -d) ;; esac
"$python" -B "$here/finish.py" names "$store"
[ "$store" = "$cache/byte-code" ] || rm -rf "$store"
