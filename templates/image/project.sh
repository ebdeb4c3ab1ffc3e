# Runs the user's own command in the copy of the project.
if find_python && externally_managed; then export PIP_BREAK_SYSTEM_PACKAGES=1 UV_BREAK_SYSTEM_PACKAGES=1; fi
export UV_SYSTEM_PYTHON=1 PATH="$PATH:$build/tools/bin"
cd /opt/project
/bin/sh "$here/command.sh"
rm -f /tmp/uv-*.lock
