# shellcheck shell=bash disable=SC2034
# What the scripts share: messages, Debian packages, the Docker Engine, parent images, the build. To be sourced; defines functions only.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TESTBED=$ROOT/scripts/testbed
PROGRAM=$(basename "$0")

# Needed to build and run, and on top of it to test: what Debian and Ubuntu call it, as a control file writes it (deb-control(5)).
# Boost's default version is too old in Debian 12, and from 1.86 on Boost.Process is a package of its own.
BUILD_PACKAGES=(cmake ninja-build 'g++' ccache pkg-config git curl ca-certificates python3 python3-venv file
  'libboost-dev (>= 1.81) | libboost1.81-dev' 'libboost-process-dev | libboost-dev (<< 1.86) | libboost1.81-dev'
  nlohmann-json3-dev libcli11-dev libspdlog-dev libkainjow-mustache-dev libcurl4-openssl-dev libgit2-dev
  libsqlite3-dev libyaml-cpp-dev libssl-dev)
TEST_PACKAGES=(libgtest-dev libgmock-dev libeigen3-dev binutils dpkg-dev groff-base openssl openssh-client openssh-server iproute2)
BROWSER_PACKAGES=(chromium npm) # the pages are looked at in one, with axe-core from npm
LINT_PACKAGES=(clang-format 'clang-tidy-16 | clang-tidy (>= 1:16)' shellcheck) # clang 14 lacks what C++20 coroutines and ranges need

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# The comment at the head of the calling script is its help.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 77; fi
}
can_be_root() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# Installs what is missing of the named Debian packages; says which. Elsewhere it only says what will be needed.
ensure_packages() {
  local wanted log
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is no Debian: docs/install.md names the packages of Fedora, Arch and macOS; Debian's are: $*"
    return 0
  fi
  wanted=$(printf '%s, ' "$@" dpkg-dev)
  if command -v dpkg-checkbuilddeps >/dev/null && dpkg-checkbuilddeps -d "$wanted" /dev/null 2>/dev/null; then return 0; fi
  can_be_root || fail "packages are missing, and installing them takes root: sudo wants a password or is missing. As root: apt-get satisfy '${wanted%, }'"
  log=$(mktemp)
  if as_root apt-get update -qq >"$log" 2>&1 && apt-get satisfy -s -qq --no-install-recommends "$wanted" >>"$log" 2>&1; then
    say "installing $(grep -c '^Inst' "$log") Debian packages"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 satisfy -y -qq --no-install-recommends "$wanted" >"$log" 2>&1 && rm -f "$log" && return 0
  fi
  tail -n 15 "$log" >&2
  fail "apt-get could not install them; its last lines are above, all of it is in $log"
}

# Installs what tests of the pages need. Where it cannot be had (Ubuntu has Chromium only as a snap), these tests skip themselves.
ensure_browser() {
  local wanted
  wanted=$(printf '%s, ' "${BROWSER_PACKAGES[@]}")
  command -v apt-get >/dev/null || return 0
  if command -v chromium >/dev/null && command -v npm >/dev/null; then return 0; fi
  if can_be_root && as_root apt-get update -qq >/dev/null 2>&1 && apt-get satisfy -s -qq --no-install-recommends "${wanted%, }" >/dev/null 2>&1; then
    ensure_packages "${BROWSER_PACKAGES[@]}"
  else
    say "the packages ${BROWSER_PACKAGES[*]} cannot be installed here: what needs a browser skips itself"
  fi
}

# Runs a function beside what follows, because it waits for a network and a disk where a build waits for the processors. `beside_is_done` waits for it, and
# returns its status. It is not interrupted: it may be installing packages.
BESIDE=
beside() {
  "$@" &
  BESIDE=$!
}
beside_is_done() {
  local process=$BESIDE
  BESIDE=
  [ -z "$process" ] || wait "$process"
}

# Configures and builds with a preset. Usage: build PRESET [TARGET...]
build() {
  local preset=$1 folder=$ROOT/build/$1 log
  shift
  log=$folder/configure.log
  mkdir -p "$folder"
  if [ ! -f "$folder/build.ninja" ]; then
    say "configuring $preset in build/$preset"
    (cd "$ROOT" && cmake --preset "$preset") >"$log" 2>&1 || {
      tail -n 25 "$log" >&2
      fail "cmake could not configure; all of it is in $log"
    }
  fi
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  (cd "$ROOT" && cmake --build --preset "$preset" "${targets[@]}") >&2 || fail "the build failed, see above"
}

# What the sanitizers of the presets asan and tsan are told; what is set already comes last, and wins. Tests preload libraries that make a disk fail, or one
# that is local look remote: these come before the sanitizer's own.
sanitizer_options() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:verify_asan_link_order=0:${ASAN_OPTIONS:-}
  export LSAN_OPTIONS=print_suppressions=0:suppressions=$ROOT/tests/support/leaks.supp:${LSAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
  export TSAN_OPTIONS=second_deadlock_stack=1:${TSAN_OPTIONS:-}
}

# Prints the path of a `pipe` that says that it was built from this commit, of the build or on PATH; none where the sources differ from the commit.
pipe_of_this_commit() {
  local commit candidate
  commit=$(git -C "$ROOT" rev-parse --short=12 HEAD 2>/dev/null) || return 1
  [ -z "$(git -C "$ROOT" status --porcelain -- src include cmake CMakeLists.txt templates 2>/dev/null)" ] || return 1
  for candidate in "$ROOT/build/release/bin/pipe" "$(command -v pipe || true)"; do
    if [ -x "$candidate" ] && "$candidate" --version 2>/dev/null | grep -q "($commit)\$"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# Does a Docker Engine answer? What DOCKER_HOST or docker's context name, else the default socket. Leaves the reason in ENGINE_PROBLEM.
ENGINE_PROBLEM=
engine_answers() {
  local socket=/var/run/docker.sock
  case ${DOCKER_HOST:-} in unix://*) socket=${DOCKER_HOST#unix://} ;; esac
  if [ -z "${DOCKER_HOST:-}" ] || [ -n "${DOCKER_HOST##tcp:*}" ] && [ -S "$socket" ] && command -v curl >/dev/null; then
    ENGINE_PROBLEM=$(curl -fsS --max-time 5 --unix-socket "$socket" http://engine/_ping 2>&1 >/dev/null) && return 0
  elif command -v docker >/dev/null; then
    ENGINE_PROBLEM=$(docker version --format '{{.Server.Version}}' 2>&1 >/dev/null) && return 0
  else
    ENGINE_PROBLEM="there is no $socket and no docker command"
  fi
  if [ -S "$socket" ] && [ ! -w "$socket" ]; then
    ENGINE_PROBLEM="$(id -un) may not use $socket (sudo adduser $(id -un) docker, then log in again)"
  fi
  return 1
}

# Does an engine answer, or can one be installed? Returns 1 with ENGINE_PROBLEM if not.
engine_can_be_had() {
  engine_answers && return 0
  if [ -n "${DOCKER_HOST:-}" ]; then
    ENGINE_PROBLEM="DOCKER_HOST is $DOCKER_HOST, and there: $ENGINE_PROBLEM"
    return 1
  fi
  if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then return 1; fi
  if ! command -v apt-get >/dev/null || ! can_be_root; then
    ENGINE_PROBLEM="none answers ($ENGINE_PROBLEM), and installing one takes Debian and root"
    return 1
  fi
}

# Makes an engine answer: one that does is left as it is; else the test bed's is installed and started. Returns 1 with ENGINE_PROBLEM if none can be had.
ensure_engine() {
  local log
  engine_answers && return 0
  engine_can_be_had || return 1
  say "no Docker Engine answers: installing and starting Debian's"
  log=$(mktemp)
  if ! as_root "$TESTBED/docker-engine" >"$log" 2>&1; then
    ENGINE_PROBLEM="none answers, and Debian's could not be started: $(tail -n 1 "$log" | cut -c 1-300)"
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  engine_answers
}

# Gives the engine stand-ins for GPUs, if it is one that these scripts have started. Any other is left alone: what needs GPUs then skips itself.
ensure_stand_in_gpus() { # N
  local log
  if [ -n "${DOCKER_HOST:-}" ] || [ ! -f /usr/local/lib/pipe-testbed/ours ] || ! can_be_root; then
    docker info --format '{{json .Runtimes}}' 2>/dev/null | grep -q nvidia || say "this engine has no GPUs and is not ours to change: GPU tests skip themselves"
    return 0
  fi
  log=$(mktemp)
  as_root "$TESTBED/docker-engine" --fake-gpus "$1" >"$log" 2>&1 || say "no stand-in GPUs, GPU tests skip themselves: $(tail -n 1 "$log" | cut -c 1-300)"
  rm -f "$log"
}

# Sees to it that the engine can get these parent images: it has them, or it can pull them, or they are made of Debian packages.
ensure_parent_images() {
  local image missing=()
  command -v docker >/dev/null || return 0 # `pipe` pulls by itself
  for image in "$@"; do
    docker image inspect "$image" >/dev/null 2>&1 || missing+=("$image")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  for image in "${missing[@]}"; do
    say "pulling $image"
    if ! timeout 600 docker pull -q "$image" >/dev/null 2>&1; then
      say "no registry has it for us: making a stand-in for $image of Debian's packages"
      as_root "$TESTBED/base-images" "$image" >&2 || {
        say "$image could not be made"
        return 1
      }
    fi
  done
}

# In a build's folder: what any engine must do, on the one of DOCKER_HOST; SUITES=engine leaves e2e out. Prints a row for each suite: engine, suite, ctest's counts, how many skipped themselves.
# What concerns an engine of another machine, GPUs or a registry is left out: it brings an engine of its own.
run_engine_suites() { # NAME OF THE ENGINE [CTEST OPTIONS...]
  local name=$1 suite log status=0 rows=()
  local not='[Rr]emote|[Mm]apped|[Rr]estarted|[Rr]egistry|gpu|Gpu|GPU|[Pp]odman|newer|[Ff]aults|proxy|two_engines'
  local e2e='^e2e/(clean|failure|hostile_step|interrupt|run|secret|workflow)_test$'
  log=$(mktemp)
  shift
  for suite in ${SUITES:-engine e2e}; do
    local what=(-L '^engine$' -E "$not")
    [ "$suite" = engine ] || what=(-R "$e2e")
    say "$suite on $name"
    ctest --output-on-failure --no-tests=error -FA '.*' -j "$(nproc)" "${what[@]}" "$@" | tee "$log" || status=1
    rows+=("| $name | $suite | $(grep -E 'tests passed' "$log" || echo "not run"); $(grep -c '\*\*\*Skipped' "$log" || true) skipped |")
  done
  rm -f "$log"
  printf '%s\n' "${rows[@]}"
  return "$status"
}
