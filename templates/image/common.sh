# Begins every script that runs inside a build. A script lies in a folder beside the build's folders host/, cache/ and tools/.
set -eu
here=${0%/*}
build=${here%/*}
cache=$build/cache

# Usage: fail REASON HINT... Ends the script, with lines that `pipe` shows as the reason of the failure and what to do about it.
fail() {
  printf 'pipe: error: %s\n' "$1"
  shift
  for hint do printf 'pipe: hint: %s\n' "$hint"; done
  exit 1
}

distribution() {
  (. /etc/os-release && printf '%s' "${PRETTY_NAME:-$NAME}") 2>/dev/null || printf 'the parent image'
}

# Finds the Python that the step's `python` will be. Some images have no `python`, and `python3` may be another Python than `python`.
find_python() {
  for python in python python3; do
    python=$(command -v "$python") && "$python" -c 'import sys; sys.exit(sys.version_info[0] != 3)' 2>/dev/null && return 0
  done
  return 1
}

# PEP 668: this Python refuses installs outside of a virtual environment. The whole image is one environment, so the refusal is overridden.
externally_managed() {
  "$python" -c 'import os, sys, sysconfig
marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
sys.exit(not (sys.prefix == sys.base_prefix and os.path.exists(marker)))'
}

# The caller's proxies, package indexes and CA bundle: for this build only.
. "$build/host/env.sh"
if [ -s "$build/host/ca.crt" ]; then
  certificates=$build/host/ca.crt
  export PIP_CERT="$certificates" SSL_CERT_FILE="$certificates" REQUESTS_CA_BUNDLE="$certificates" CURL_CA_BUNDLE="$certificates" GIT_SSL_CAINFO="$certificates"
else
  certificates=
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off PIP_CACHE_DIR="$cache/pip"
export UV_CACHE_DIR="$cache/uv" UV_LINK_MODE=copy UV_NO_PROGRESS=1 UV_NO_WRAP=1 UV_PYTHON_DOWNLOADS=never
mkdir -p "$cache"
