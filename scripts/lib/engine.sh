# shellcheck shell=bash
# The Docker Engine and the parent images that scripts need. Sourced by lib.sh.

# The program and, for users who are not root, its folder, which is not on their PATH.
has_dockerd() { PATH=$PATH:/usr/sbin command -v dockerd >/dev/null; }

# Does a Docker Engine answer: that of DOCKER_HOST or docker's context, else that of the default socket?
# Returns 1 with the reason in ENGINE_PROBLEM.
ENGINE_PROBLEM=
engine_answers() {
  local socket=
  case ${DOCKER_HOST:-} in
    '') socket=/var/run/docker.sock ;;
    unix://*) socket=${DOCKER_HOST#unix://} ;;
  esac
  if [ -S "$socket" ] && [ ! -w "$socket" ]; then
    ENGINE_PROBLEM="$(id -un) may not use $socket (sudo adduser $(id -un) docker, then log in again)"
    return 1
  fi
  if [ -S "$socket" ] && command -v curl >/dev/null; then
    ENGINE_PROBLEM=$(curl -fsS --max-time 5 --unix-socket "$socket" http://engine/_ping 2>&1 >/dev/null)
  elif command -v docker >/dev/null; then
    ENGINE_PROBLEM=$(timeout 30 docker version --format '{{.Server.Version}}' 2>&1 >/dev/null </dev/null)
  else
    ENGINE_PROBLEM="there is no ${socket:-docker command to reach $DOCKER_HOST with}"
    return 1
  fi
}

# Does an engine answer, or can one be installed, started or entered? Returns 1 with ENGINE_PROBLEM.
engine_can_be_had() {
  engine_answers && return 0
  if [ -n "${DOCKER_HOST:-}" ]; then
    ENGINE_PROBLEM="DOCKER_HOST is $DOCKER_HOST, and there: $ENGINE_PROBLEM"
    return 1
  fi
  local problem=$ENGINE_PROBLEM
  can_be_root "no Docker Engine answers ($problem)" || {
    [ -S /var/run/docker.sock ] || ENGINE_PROBLEM="none answers ($problem), and installing one takes root"
    return 1
  }
  has_dockerd || [ -S /var/run/docker.sock ] || command -v apt-get >/dev/null || {
    ENGINE_PROBLEM="none answers ($problem), and these scripts install one only on Debian"
    return 1
  }
}

# Prints the packages of an engine that has to be installed; nothing where there is one.
engine_packages() {
  has_dockerd || [ -n "${DOCKER_HOST:-}" ] || [ -S /var/run/docker.sock ] || printf '%s\n' "${ENGINE_PACKAGES[@]}"
}

# Makes an engine answer: one that does is left as it is; else Debian's is started, and first installed
# if ensure_packages has not done so. Returns 1 with ENGINE_PROBLEM if none can be had. Given the
# arguments of the calling script, starts that again where the user may not use the engine yet.
ensure_engine() { # [SCRIPT'S ARGUMENT...]
  local log
  engine_answers && return 0
  engine_can_be_had || return 1
  if [ ! -S /var/run/docker.sock ] || [ -w /var/run/docker.sock ]; then
    say "no Docker Engine answers: starting Debian's"
    log=$(mktemp)
    as_root "$TESTBED/docker-engine" >"$log" 2>&1 || {
      ENGINE_PROBLEM="none answers, and Debian's could not be started: $(tail -n 1 "$log" | cut -c 1-300)"
      rm -f "$log"
      return 1
    }
    rm -f "$log"
  fi
  engine_answers || join_engine_group "$@"
}

# Replaces the calling script by itself in the group of the engine's socket. Who was given an engine a
# moment ago, or was put in the group docker after logging in, is not in that group yet.
join_engine_group() { # SCRIPT'S ARGUMENT...
  local group groups
  group=$(stat -Lc %g /var/run/docker.sock)
  [ "$group" != 0 ] && [ -z "${PIPE_IN_ENGINE_GROUP:-}" ] || return 1
  say "$(id -un) is not in the group of the engine: this command goes on through sudo, as $(id -un)." \
    "For others: sudo adduser $(id -un) docker, then log in again"
  groups=$(id -G)
  exec sudo -E env PATH="$PATH" HOME="$HOME" PIPE_IN_ENGINE_GROUP=yes \
    setpriv --reuid "$(id -u)" --regid "$(id -g)" --groups "${groups// /,},$group" "$0" "$@"
}

# Gives the engine stand-ins for GPUs, if it is one that these scripts have started. Any other is left
# alone: what needs GPUs then skips itself.
ensure_stand_in_gpus() { # N
  local log
  if [ -n "${DOCKER_HOST:-}" ] || [ ! -f /usr/local/lib/pipe-testbed/ours ] || ! can_be_root "stand-ins for GPUs"; then
    docker info --format '{{json .Runtimes}}' 2>/dev/null | grep -q nvidia ||
      say "this engine has no GPUs and is not ours to change: GPU tests skip themselves"
    return 0
  fi
  log=$(mktemp)
  as_root "$TESTBED/docker-engine" --fake-gpus "$1" >"$log" 2>&1 ||
    say "no stand-in GPUs, GPU tests skip themselves: $(tail -n 1 "$log" | cut -c 1-300)"
  rm -f "$log"
}

# Sees to it that the engine can get these parent images: it has them, or it can pull them, or they are
# made of Debian packages.
ensure_parent_images() { # IMAGE...
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

# Runs in a build's folder what any engine must do, on the engine of DOCKER_HOST; SUITES=engine leaves e2e
# out. Prints a row for each suite: engine, suite, ctest's counts, how many tests skipped themselves.
# Tests of engines on other machines, of GPUs and of registries are left out: they bring their own engine.
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
