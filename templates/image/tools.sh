# Usage: fetch.sh uv|pip required|optional. Gets the installer into /pipe-tools of a stage that is thrown away.
mkdir -p /pipe-tools
[ "$1" != uv ] || ! command -v uv >/dev/null 2>&1 || exit 0
if ! find_python; then
  [ "$2" = required ] || exit 0
  if command -v apt-get >/dev/null 2>&1; then
    fail "Python requirements are asked for, and $(distribution) has no Python" \
      "add 'apt_packages: [python3]', or choose a parent_image that has Python, such as python:3.12-slim"
  fi
  fail "Python requirements are asked for, and $(distribution) has no Python" "choose a parent_image that has Python, such as python:3.12-slim"
fi
# The installer has the version and hash of tools.txt, wherever it comes from. If the cache has it, no pip is needed: first, the program `false` stands for pip.
tool() { "$python" -I -B "$here/install_locked.py" tool "$cache/files" /pipe-tools "$here/tools.txt" "$@"; }
[ "$1" != uv ] || ! tool uv false 2>/dev/null || exit 0
has_pip() { "$python" -m pip --version >/dev/null 2>&1; }
if has_pip; then
  case $1 in pip) exit 0 ;; esac
elif ! "$python" -m ensurepip >/dev/null 2>&1 || ! has_pip; then
  echo "the parent image has no pip: taking one from the distribution for this stage"
  if command -v apt-get >/dev/null 2>&1; then
    apt-get -q ${certificates:+-o "Acquire::https::CAInfo=$certificates"} update &&
      DEBIAN_FRONTEND=noninteractive apt-get -q ${certificates:+-o "Acquire::https::CAInfo=$certificates"} install -y --no-install-recommends python3-pip || :
    python=/usr/bin/python3
  elif command -v apk >/dev/null 2>&1; then
    apk add --no-cache py3-pip || :
    python=/usr/bin/python3
  elif command -v dnf >/dev/null 2>&1; then
    dnf install -y python3-pip || :
    python=/usr/bin/python3
  elif command -v microdnf >/dev/null 2>&1; then
    microdnf install -y python3-pip || :
    python=/usr/bin/python3
  fi
  if ! has_pip; then
    [ "$2" = required ] || exit 0
    fail "the parent image has Python but no pip, and neither ensurepip nor the package manager of $(distribution) gave one" \
      "choose a parent_image with pip or uv, or install one of them in a 'dockerfile' of your own"
  fi
fi
echo "fetching $1"
tool "$1" "$python" -m pip || fail "$1 could not be fetched" \
  "an index has to offer the version of $1 that pipe names by its hash; or choose a parent_image that has $1"
