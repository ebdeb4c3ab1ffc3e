# shellcheck shell=bash disable=SC2034
# Debian packages: which ones there are, and the one place that installs them. Sourced by lib.sh; no
# other script calls apt on this machine.

# Packages for building and running, and further ones for tests, in the form of control files
# (deb-control(5)) and with the names of Debian and Ubuntu. Boost's default version is too old in
# Debian 12, and from 1.86 on Boost.Process is a separate package.
BUILD_PACKAGES=(cmake ninja-build 'g++' ccache pkg-config git curl ca-certificates python3 python3-venv file
  'libboost-dev (>= 1.81) | libboost1.81-dev' 'libboost-process-dev | libboost-dev (<< 1.86) | libboost1.81-dev'
  nlohmann-json3-dev libcli11-dev libspdlog-dev libkainjow-mustache-dev libcurl4-openssl-dev libgit2-dev
  libsqlite3-dev libyaml-cpp-dev libssl-dev)
TEST_PACKAGES=(libgtest-dev libgmock-dev libeigen3-dev binutils dpkg-dev gpg groff-base openssl openssh-client
  openssh-server iproute2 python3-dev python3-pip strace)
# For the tests of pages, which use axe-core from npm. Ubuntu's chromium-browser provides the name chromium without a version; it installs snapd,
# fails in a container, and its browser sees no files below /tmp.
BROWSER_PACKAGES=('chromium (>= 90)' npm)
# clang 14 lacks what C++20 coroutines and ranges need.
LINT_PACKAGES=(clang-format 'clang-tidy-16 | clang-tidy (>= 1:16)' shellcheck)
FUZZ_PACKAGES=('clang-16 | clang (>= 1:16)' 'libclang-rt-16-dev | libclang-rt-dev (>= 1:16)')
# From Debian 13 on, the client is a separate package.
ENGINE_PACKAGES=('docker-cli | docker.io' docker.io iptables iproute2 python3 ca-certificates curl)

# The test beds' clusters: scripts/testbed/kubernetes, kubernetes-newer.
CLUSTER_PACKAGES=(etcd-server openssl)
SLURM_PACKAGES=(slurmctld slurmd slurm-client munge)
SLURM_IMAGE_PACKAGES=(charliecloud-runtime squashfs-tools)
NEWER_CLUSTER_PACKAGES=(containerd runc containernetworking-plugins openssl gcc)

# Runs a command as root; returns 77, which marks a test as skipped, if that takes sudo and there is none.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 77; fi
}

# Returns 0 if commands can be run as root. If sudo needs a password, it is asked for once, on a terminal.
SUDO_REFUSED=
can_be_root() { # [WHAT FOR]
  if [ "$(id -u)" = 0 ]; then return 0; fi
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null; then return 0; fi
  [ -z "$SUDO_REFUSED" ] && [ -t 0 ] && [ -t 2 ] || return 1
  say "sudo wants your password${1:+: $1}"
  if sudo -v; then return 0; fi
  SUDO_REFUSED=yes
  return 1
}

# Runs apt-get as root; the output is in APT_LOG. Waits up to ten minutes while another program holds one
# of the locks of apt and dpkg: a new cloud machine updates itself in its first minutes, and for the lock
# of the lists apt-get has no option that waits.
APT_LOG=
apt_get() {
  local deadline=$((SECONDS + 600)) holder said=
  # On a full disk a file can be made, but has no room for apt's words.
  [ -n "$APT_LOG" ] || { APT_LOG=$(mktemp) && head -c 65536 /dev/zero >"$APT_LOG"; } ||
    fail "no file can be made in ${TMPDIR:-/tmp}: set TMPDIR to a folder that can be written and has space"
  until as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >"$APT_LOG" 2>&1; do
    holder=$(sed -n 's/^E[a-z]*: Could not get lock //p' "$APT_LOG" | head -n 1)
    [ -n "$holder" ] && [ "$SECONDS" -lt "$deadline" ] || return 1
    [ -n "$said" ] || say "waiting for another program that holds a lock of apt: $holder"
    said=yes
    sleep 1
  done
}

apt_failed() { # WHAT
  tail -n 15 "$APT_LOG" >&2
  fail "apt-get could not $1; its last lines are above, all of it is in $APT_LOG"
}

# Returns 0 if apt-get can install what these relations lack, and keeps all that is installed: another program may need it.
apt_can_install() { # RELATIONS
  apt_get satisfy -s --no-install-recommends "$1" && ! grep -q '^Remv ' "$APT_LOG"
}

# Says why the packages cannot be installed. Where apt-get reaches no mirror, it ends with success and with old lists or none, so the warnings
# of its update are the reason.
install_failed() { # RELATIONS, WARNINGS OF THE UPDATE
  local removed
  removed=$(sed -n 's/^Remv \([^ ]*\).*/\1/p' "$APT_LOG" | paste -sd ' ')
  [ -z "$removed" ] || fail "apt-get would remove packages of this machine for those that are missing: $removed. If nothing needs them, as root:" \
    "apt-get satisfy --no-install-recommends '$1'"
  [ -z "$2" ] || say "apt-get could not update all of its lists:"$'\n'"$2"
  apt_failed "install the packages"
}

# Returns 0 if the packages of these relations are installed.
are_installed() { # RELATIONS
  command -v dpkg-checkbuilddeps >/dev/null && dpkg-checkbuilddeps -d "$1" /dev/null 2>/dev/null
}

# Installs what is missing of the named Debian packages, and says so. The packages after --optional are
# left out where they cannot be had (Ubuntu has Chromium only as a snap). On other systems the names are
# printed, nothing else.
ensure_packages() { # PACKAGE... [--optional PACKAGE...]
  local needed all warnings
  all=$(printf '%s, ' "$@")
  needed=${all%%--optional, *}dpkg-dev
  all=${all/--optional, /}dpkg-dev
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is not a Debian: docs/install.md names the packages of Fedora, Arch and macOS; Debian's are: $needed"
    return 0
  fi
  if are_installed "$all"; then return 0; fi
  if ! can_be_root "Debian packages are missing"; then
    if are_installed "$needed"; then
      say "installing optional packages takes root: the tests that need them skip themselves"
      return 0
    fi
    fail "packages are missing, and installing them takes root: sudo is missing or wants a password. As root:" \
      "apt-get update && apt-get satisfy --no-install-recommends '$needed'"
  fi
  apt_get update || apt_failed "update its lists"
  warnings=$(grep '^W: ' "$APT_LOG" | head -n 3 || true)
  if ! apt_can_install "$all"; then
    [ "$all" != "$needed" ] || install_failed "$all" "$warnings"
    if are_installed "$needed" || apt_can_install "$needed"; then
      say "this system lacks optional packages: the tests that need them skip themselves"
    else
      install_failed "$needed" "$warnings"
    fi
    all=$needed
    if are_installed "$all"; then return 0; fi
  fi
  say "installing $(grep -c '^Inst' "$APT_LOG" || true) Debian packages"
  apt_get satisfy -y --no-install-recommends "$all" || apt_failed "install the packages"
  rm -f "$APT_LOG"
  APT_LOG=
}

# Prints the packages of a browser, unless one is installed, from wherever.
browser_packages() {
  command -v chromium >/dev/null && command -v npm >/dev/null || printf '%s\n' "${BROWSER_PACKAGES[@]}"
}

# Prints the URL of the mirror that this machine's Debian packages come from; Debian's own if there is none, as on Ubuntu, whose mirror has no
# Debian, or if apt chooses one from a list (mirror+file:, as on Debian's cloud images), which other programs do not read. Tests
# set ETC, the folder in place of /etc.
debian_mirror() {
  local etc=${ETC:-/etc} mirror=
  # shellcheck source=/dev/null
  if [ "$(. "$etc/os-release" && echo "$ID")" = debian ]; then
    mirror=$(cat "$etc/apt/sources.list.d/debian.sources" "$etc/apt/sources.list" 2>/dev/null |
      awk '$1 == "deb" || $1 == "URIs:" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}' || true)
  fi
  printf '%s\n' "${mirror:-http://deb.debian.org/debian}"
}
