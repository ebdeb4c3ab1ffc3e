# Usage: install.sh uv|pip
[ "$(id -u)" = 0 ] || fail "requirements are installed as root, and the parent image runs as user $(id -u)"
find_python || fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
cd "$here"  # Paths in requirements are relative to this folder.
installer=$1
set --
! externally_managed || set -- --break-system-packages
while IFS= read -r argument; do set -- "$@" "$argument"; done <arguments
[ ! -e requirements.txt ] || set -- "$@" -r requirements.txt
[ ! -e constraints.txt ] || set -- "$@" -c constraints.txt

if [ "$installer" = uv ]; then
  uv=$(command -v uv) || uv=$build/tools/bin/uv
  [ ! -e pyproject.toml ] || set -- "$@" -r pyproject.toml
  "$uv" pip install --python "$python" --compile-bytecode "$@"
else
  if [ -e pyproject.toml ]; then
    list=$(mktemp)
    "$python" - pyproject.toml >"$list" <<'PYTHON' || fail "pyproject.toml cannot be read with this Python" "set pyproject_export_command, or python_package_installer: uv"
import sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
project = tomllib.load(open(sys.argv[1], "rb")).get("project", {})
if "dependencies" in project.get("dynamic", []):
    print("pipe: error: the dependencies in pyproject.toml are dynamic", file=sys.stderr)
    sys.exit(1)
print("\n".join(project.get("dependencies", [])))
PYTHON
    set -- "$@" -r "$list"
  fi
  "$python" -m pip --version >/dev/null 2>&1 || export PYTHONPATH="$build/tools"
  "$python" -m pip install "$@"
  [ -z "${list-}" ] || rm -f "$list"
fi
rm -f /tmp/uv-*.lock
