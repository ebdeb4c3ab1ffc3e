# shellcheck shell=bash
# Functions for the Docker Engine and the parent images that scripts need. lib.sh sources this file.

# Returns 0 if dockerd is installed.
has_dockerd() { command -v dockerd >/dev/null; }

# Returns 0 if a Docker Engine answers, and another status with the reason in ENGINE_PROBLEM if not. Asks the
# socket that DOCKER_HOST names, or the default socket if DOCKER_HOST is not set. If there is no such socket,
# asks through the command docker, which also reaches engines on other machines and that of its context.
ENGINE_PROBLEM=
engine_answers() {
  local socket=
  case ${DOCKER_HOST:-} in
    '') socket=/var/run/docker.sock ;;
    unix://*) socket=${DOCKER_HOST#unix://} ;;
  esac
  if [ -S "$socket" ] && [ ! -w "$socket" ]; then
    ENGINE_PROBLEM="$(id -un) may not use $socket: run \`sudo adduser $(id -un) docker\`, then log in again"
    return 1
  fi
  if [ -S "$socket" ] && command -v curl >/dev/null; then
    ENGINE_PROBLEM=$(curl -fsS --max-time 5 --unix-socket "$socket" http://engine/_ping 2>&1 >/dev/null)
  elif [ ! -S "$socket" ] && docker --version 2>/dev/null | grep -q podman; then
    # Podman's `docker` answers without the service that `pipe` needs, and whatever DOCKER_HOST says.
    ENGINE_PROBLEM="the command docker is Podman here, and its service does not answer: run \`systemctl --user start podman.socket\`, and set DOCKER_HOST=unix:///run/user/$(id -u)/podman/podman.sock"
    return 1
  elif command -v docker >/dev/null; then
    ENGINE_PROBLEM=$(timeout 30 docker version --format '{{.Server.Version}}' 2>&1 >/dev/null </dev/null)
  else
    if [ -S "$socket" ]; then
      ENGINE_PROBLEM="these scripts ask $socket by curl or docker, and neither is installed: install curl"
    elif [ -n "$socket" ]; then
      ENGINE_PROBLEM="the engine's socket $socket does not exist"
    else
      ENGINE_PROBLEM="the command docker, which reaches $DOCKER_HOST, is not installed: install it, or unset DOCKER_HOST"
    fi
    return 1
  fi
}

# Returns 0 if an engine answers, or if ensure_engine can install or start one or join its group. Otherwise
# returns 1 with the reason in ENGINE_PROBLEM.
engine_can_be_had() {
  engine_answers && return 0
  if [ -n "${DOCKER_HOST:-}" ]; then
    ENGINE_PROBLEM="the engine of DOCKER_HOST=$DOCKER_HOST does not answer: $ENGINE_PROBLEM"
    return 1
  fi
  local problem=$ENGINE_PROBLEM
  can_be_root "root starts a Docker Engine, because none answers ($problem)" || {
    [ -S /var/run/docker.sock ] || ENGINE_PROBLEM="no engine answers ($problem), and only root can install one: run this command as root, or install sudo"
    return 1
  }
  has_dockerd || [ -S /var/run/docker.sock ] || command -v apt-get >/dev/null || {
    ENGINE_PROBLEM="no engine answers ($problem), and these scripts install one only on Debian: install Docker, or set DOCKER_HOST"
    return 1
  }
}

# Prints the packages of an engine if one has to be installed, and nothing if this machine has one or
# DOCKER_HOST names one.
engine_packages() {
  has_dockerd || [ -n "${DOCKER_HOST:-}" ] || [ -S /var/run/docker.sock ] || printf '%s\n' "${ENGINE_PACKAGES[@]}"
}

# Sees to it that an engine answers. If none does, starts Debian's, and installs it first unless
# ensure_packages has done so. If the user may not use the engine yet, starts the calling script again, with
# the arguments given here, in the group of the engine. Returns 1 with ENGINE_PROBLEM if all of this fails.
ensure_engine() { # [SCRIPT'S ARGUMENT...]
  local log
  engine_answers && return 0
  engine_can_be_had || return 1
  if [ ! -S /var/run/docker.sock ] || [ -w /var/run/docker.sock ]; then
    say "no Docker Engine answers, so this command starts Debian's"
    log=$(mktemp)
    as_root "$TESTBED/docker-engine" >"$log" 2>&1 || {
      ENGINE_PROBLEM="no engine answers, and scripts/testbed/docker-engine could not start Debian's: $(tail -n 1 "$log" | cut -c 1-300)"
      rm -f "$log"
      return 1
    }
    rm -f "$log"
  fi
  engine_answers || join_engine_group "$@"
}

# Starts the calling script again, in place of this process, in the group of the engine's socket. A user for
# whom an engine was installed a moment ago, or who was added to the group docker after logging in, is not in
# that group before the next login. The script that is started again may be on another terminal, sudo's own,
# for which sudo would ask for the password again, in the middle of a build: root gets PARENT_IMAGES before.
join_engine_group() { # SCRIPT'S ARGUMENT...
  local group groups
  group=$(stat -Lc %g /var/run/docker.sock)
  [ "$group" != 0 ] && [ -z "${PIPE_IN_ENGINE_GROUP:-}" ] || return 1
  say "$(id -un) is not in the group that may use the engine, so sudo starts this command again in that group," \
    "as $(id -un). To use the engine in other commands, run \`sudo adduser $(id -un) docker\` and log in again"
  if [ ${#PARENT_IMAGES[@]} -gt 0 ]; then
    engine_user=(sudo)
    ensure_parent_images "${PARENT_IMAGES[@]}" || true # The build tries again.
  fi
  groups=$(id -G)
  exec sudo -E env PATH="$PATH" ${HOME:+"HOME=$HOME"} PIPE_IN_ENGINE_GROUP=yes \
    setpriv --reuid "$(id -u)" --regid "$(id -g)" --groups "${groups// /,},$group" "$0" "$@"
}

# Gives the engine N stand-ins for GPUs if these scripts have started that engine. Another engine is left
# unchanged, and the tests that need GPUs skip themselves.
ensure_stand_in_gpus() { # N
  local log
  if [ -n "${DOCKER_HOST:-}" ] || [ ! -f /usr/local/lib/pipe-testbed/ours ] || ! can_be_root "stand-ins for GPUs"; then
    docker info --format '{{json .Runtimes}}' 2>/dev/null | grep -q nvidia ||
      say "the engine has no GPUs, and these scripts give stand-ins only to an engine that they have started: GPU tests skip themselves"
    return 0
  fi
  log=$(mktemp)
  as_root "$TESTBED/docker-engine" --fake-gpus "$1" >"$log" 2>&1 ||
    say "the engine did not get stand-in GPUs, so GPU tests skip themselves: $(tail -n 1 "$log" | cut -c 1-300)"
  rm -f "$log"
}

# Sees to it that the engine has these parent images: pulls those that it lacks, and makes stand-ins of
# Debian packages for those that cannot be pulled.
PARENT_IMAGES=() # Those that the calling script needs.
engine_user=()   # Words before `docker`, where the user may not use the engine yet.
ensure_parent_images() { # IMAGE...
  local image missing=()
  command -v docker >/dev/null || return 0 # `pipe` itself pulls the images that a step needs.
  for image in "$@"; do
    "${engine_user[@]}" docker image inspect "$image" >/dev/null 2>&1 || missing+=("$image")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  for image in "${missing[@]}"; do
    say "pulling $image"
    if ! timeout 600 "${engine_user[@]}" docker pull -q "$image" >/dev/null 2>&1; then
      say "docker could not pull $image, so this command makes a stand-in for it of Debian packages"
      as_root env ${DOCKER_HOST:+"DOCKER_HOST=$DOCKER_HOST"} "$TESTBED/base-images" "$image" >&2 || {
        say "the stand-in for $image could not be made, see above: pull the image by hand, or load it with \`docker load\`"
        return 1
      }
    fi
  done
}

# Runs the tests that must pass on any engine, on the engine of DOCKER_HOST. The current folder is that of a
# build. SUITES=engine leaves the end-to-end tests out. Prints a row for each suite: engine, suite, ctest's
# counts, and the number of tests that skipped themselves.
run_engine_suites() { # NAME OF THE ENGINE [CTEST OPTIONS...]
  local name=$1 suite log status=0 rows=()
  # Parts of the names of tests that start an engine or a registry of their own, or need one that this engine
  # may not be: on another machine, with mapped users, with GPUs, restarted, newer, behind a proxy or with faults.
  local own_engine='[Rr]emote|[Mm]apped|[Rr]estarted|[Rr]egistry|gpu|Gpu|GPU|[Pp]odman|newer|[Ff]aults|proxy|two_engines'
  # The end-to-end tests that must pass on any engine.
  local end_to_end='^e2e/(clean|failure|hostile_step|interrupt|run|secret|workflow)_test$'
  log=$(mktemp)
  shift
  for suite in ${SUITES:-engine e2e}; do
    local selection=(-L '^engine$' -E "$own_engine")
    [ "$suite" = engine ] || selection=(-R "$end_to_end")
    say "running the suite $suite on $name"
    ctest --output-on-failure --no-tests=error -FA '.*' -j "$(nproc)" "${selection[@]}" "$@" | tee "$log" || status=1
    rows+=("| $name | $suite | $(grep -E 'tests passed' "$log" || echo "not run"); $(grep -c '\*\*\*Skipped' "$log" || true) skipped |")
  done
  rm -f "$log"
  printf '%s\n' "${rows[@]}"
  return "$status"
}
