# shellcheck shell=bash disable=SC2034
# Functions that the scripts share: messages, work in the background, the build; and those of lib/:
# Debian packages, the Docker Engine. To be sourced; does nothing by itself.
set -euo pipefail

unset CDPATH # with it, `cd` prints where it goes
PATH=$PATH:/usr/sbin:/sbin # users and a root that has come by `su` have neither: dockerd, debootstrap, chroot
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TESTBED=$ROOT/scripts/testbed
PROGRAM=$(basename "$0")

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# Prints a free port of this address. It is outside of the range from which the kernel takes ports for
# connections, because another program could get such a port before the server opens it.
free_port() { # [ADDRESS]
  python3 - "${1:-127.0.0.1}" <<'END'
import random, socket, sys
while True:
    port = random.randrange(21000, 30000)
    try:
        socket.create_server((sys.argv[1], port)).close()
        print(port)
        break
    except OSError:
        pass
END
}

# Removes a folder in which systems are made. An interrupted debootstrap may have left this machine's /proc mounted there, so all mounts are undone first.
remove_system() { # FOLDER
  local mounted
  while read -r _ mounted _; do
    case $mounted in "$1"/*) umount -l "$mounted" ;; esac
  done </proc/mounts
  rm -rf --one-file-system "$1"
}

# The comment at the head of the calling script is its help.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

# Runs a function in the background: one that waits for a network and a disk while a build needs the
# processors. `beside_is_done` waits for the function and returns its status. It ends with the script.
BESIDE=
beside() { # FUNCTION [ARGUMENT...]
  "$@" &
  BESIDE=$!
  trap end_beside EXIT
}
beside_is_done() {
  local process=$BESIDE status=0
  [ -z "$process" ] || wait "$process" || status=$?
  BESIDE=
  return "$status"
}
end_beside() {
  [ -n "$BESIDE" ] || return 0
  end_tree "$BESIDE"
  wait "$BESIDE" 2>/dev/null || true
}
# Ends a process and its descendants. A package manager is waited for instead: half of an installation is
# worse.
end_tree() { # PROCESS
  local child
  if [ "$(cat "/proc/$1/comm" 2>/dev/null)" = apt-get ]; then
    while [ -e "/proc/$1" ]; do sleep 0.1; done
    return
  fi
  # shellcheck disable=SC2013  # numbers, in one line
  for child in $(cat "/proc/$1"/task/*/children 2>/dev/null); do end_tree "$child"; done
  kill "$1" 2>/dev/null || sudo -n kill "$1" 2>/dev/null || true
}

# Runs git in this clone, also if another user owns the clone: whoever runs its scripts trusts it.
git_here() { git -c safe.directory="$ROOT" -C "$ROOT" "$@" 2>/dev/null; }

# Prints how many compilers may run at once: a batch of sources takes up to 1.8 GB. A container sees the memory of its machine, and may use what
# its control group allows (version 2, or 1): the job of a CI, for example.
jobs_by_memory() {
  { cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || true; } |
    awk -v cpus="$(nproc)" '
      /^[0-9]+$/ && (limit == "" || $1 / 1024 < limit) {limit = $1 / 1024}
      /^MemAvailable:/ {free = limit == "" || $2 < limit ? $2 : limit; jobs = int(free / 1.9e6); print jobs < 1 ? 1 : jobs < cpus ? jobs : cpus}' - /proc/meminfo
}

# Configures and builds with a preset. Usage: build PRESET [TARGET...]
build() {
  local preset=$1 folder=$ROOT/build/$1 log
  shift
  log=$folder/configure.log
  mkdir -p "$folder" 2>/dev/null || true
  [ -w "$folder" ] || fail "$(id -un) may not write in $folder: build in a clone of your own"
  if [ ! -f "$folder/build.ninja" ]; then
    say "configuring $preset in build/$preset"
    (cd "$ROOT" && cmake --preset "$preset") >"$log" 2>&1 || {
      tail -n 25 "$log" >&2
      fail "cmake could not configure; all of it is in $log"
    }
  fi
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  (cd "$ROOT" && cmake --build --preset "$preset" -j "$(jobs_by_memory)" "${targets[@]}") >&2 ||
    fail "the build failed, see above"
}

# Options of the sanitizers in the presets asan and tsan; values that are already set come last, and win. Tests preload libraries that make a disk fail, or one
# that is local look remote: these come before the sanitizer's own.
sanitizer_options() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:verify_asan_link_order=0:${ASAN_OPTIONS:-}
  export LSAN_OPTIONS=print_suppressions=0:suppressions=$ROOT/tests/support/leaks.supp:${LSAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
  export TSAN_OPTIONS=second_deadlock_stack=1:${TSAN_OPTIONS:-}
}

# Prints the path of a `pipe` whose version names this commit: that of the build, or one on PATH. Returns 1
# if there is none, or if the sources differ from the commit.
pipe_of_this_commit() {
  local commit candidate
  commit=$(git_here rev-parse --short=12 HEAD) || return 1
  [ -z "$(git_here status --porcelain -- src include cmake CMakeLists.txt templates)" ] || return 1
  for candidate in "$ROOT/build/release/bin/pipe" "$(command -v pipe || true)"; do
    if [ -x "$candidate" ] && "$candidate" --version 2>/dev/null | grep -q "($commit)\$"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# shellcheck source=scripts/lib/packages.sh
. "$ROOT/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/engine.sh
. "$ROOT/scripts/lib/engine.sh"
