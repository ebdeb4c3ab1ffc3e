"""Measures steps with nodes beside other programs that start such processes. All in one run, in turn; medians, and the fastest and slowest.
PIPE=... bench/gangs.py [ROUNDS [PART]...]

A PART is one of these; by default all:
    one      a gang of one process beside a plain step, local and docker
    local    from the start of the command to the first line of the last of 8 ranks: pipe and torchrun. TORCHRUN names the command of an environment with PyTorch
    docker   the same for 8 containers: pipe and `docker-compose up` (COMPOSE names the command)
    restart  from the kill of one of 8 ranks to the first line of the last of all of them, begun again in place: local and docker
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import machine

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("rounds", type=int, nargs="?", default=5)
parser.add_argument("parts", nargs="*", metavar="part")
options = parser.parse_args()
ROUNDS, PARTS = options.rounds, options.parts or ["one", "local", "docker", "restart"]
PIPE = os.environ.get("PIPE") or parser.error("the variable PIPE names the program")
TORCHRUN = shlex.split(os.environ.get("TORCHRUN") or shutil.which("torchrun") or "")
COMPOSE = shlex.split(os.environ.get("COMPOSE") or shutil.which("docker-compose") or "")
RANKS = 8
IMAGE = "python:3.11-slim-bookworm"
# A rank's first line: the time by the clock that all processes of a machine share, in one write, since torchrun's processes share a pipe, too.
PRINT_BEGIN = "import os, time\nos.write(1, f'began {time.time()} {os.getpid()}\\n'.encode())\n"


def shown(what: str, seconds: list[float]) -> str:
    return f"{what} {1000 * statistics.median(seconds):.0f} ms ({1000 * min(seconds):.0f} to {1000 * max(seconds):.0f})"


def write(folder: pathlib.Path, step: dict, program: str):
    (folder / "train.py").write_text(program)
    document = {"name": "bench", "settings": {"docker": {"parent_image": IMAGE}}, "steps": {"train": {"command": ["python3", "train.py"], **step}}}
    (folder / "pipeline.yaml").write_text(json.dumps(document))


def start(folder: pathlib.Path, place: str) -> subprocess.Popen:
    return subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", place, "--no-cache", "--output", "json"], cwd=folder, text=True, stdout=subprocess.PIPE,
                            env={**os.environ, "PIPE_HOME": str(folder / "state")})


def began(lines, count: int) -> list[tuple[float, int]]:
    """Returns the begin and the number of each of the first `count` processes, as PRINT_BEGIN has printed them."""
    found = []
    for line in lines:
        found += [(float(moment), int(process)) for moment, process in re.findall(r"began ([\d.]+) (\d+)", line)]  # processes may share a line
        if len(found) >= count:
            return found
    sys.exit(f"only {len(found)} of {count} have begun")


def run_time(folder: pathlib.Path, place: str) -> float:
    """Returns the seconds of a whole run."""
    begin = time.monotonic()
    process = start(folder, place)
    process.communicate()
    if process.returncode != 0:
        sys.exit(f"pipe ended with {process.returncode}")
    return time.monotonic() - begin


def one(folder: pathlib.Path):
    for place in ("local", "docker"):
        took: dict[str, list[float]] = {"plain": [], "gang of one": []}
        for turn in range(ROUNDS + 1):
            for name, step in (("plain", {}), ("gang of one", {"nodes": 1})):
                write(folder, step, PRINT_BEGIN)
                seconds = run_time(folder, place)
                if turn > 0:  # the first has built the image
                    took[name].append(seconds)
        print(f"one, {place}, whole run: {'; '.join(shown(name, seconds) for name, seconds in took.items())}", flush=True)


def time_to_first_lines(folder: pathlib.Path, place: str) -> float:
    """Returns the seconds from the start of `pipe` to the first line of the last rank."""
    begin = time.time()
    process = start(folder, place)
    last = max(moment for moment, _ in began(process.stdout, RANKS))
    process.communicate()
    return last - begin


def local(folder: pathlib.Path):
    by_pipe, by_torchrun = [], []
    for _ in range(ROUNDS):
        write(folder, {"nodes": {"count": 1, "processes": RANKS}}, PRINT_BEGIN)
        by_pipe.append(time_to_first_lines(folder, "local"))
        if TORCHRUN:
            begin = time.time()
            process = subprocess.Popen([*TORCHRUN, "--standalone", f"--nproc_per_node={RANKS}", "train.py"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            by_torchrun.append(max(moment for moment, _ in began(process.stdout, RANKS)) - begin)
            process.communicate()
    print(f"local, {RANKS} ranks to their first line: {shown('pipe', by_pipe)}; {shown('torchrun', by_torchrun) if by_torchrun else 'torchrun is not there'}", flush=True)


def docker(folder: pathlib.Path):
    by_pipe, by_compose = [], []
    service = {"image": IMAGE, "command": ["python3", "/code/train.py"], "volumes": [f"{folder}:/code:ro"]}
    for turn in range(ROUNDS + 1):
        write(folder, {"nodes": RANKS}, PRINT_BEGIN)
        (folder / "compose.yaml").write_text(json.dumps({"version": "3.7", "services": {f"rank{rank}": service for rank in range(RANKS)}}))
        seconds = [time_to_first_lines(folder, "docker")]
        if COMPOSE:
            begin = time.time()
            process = subprocess.Popen([*COMPOSE, "-f", "compose.yaml", "-p", folder.name.lower(), "up", "--no-color"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            seconds.append(max(moment for moment, _ in began(process.stdout, RANKS)) - begin)
            process.communicate()
            subprocess.run([*COMPOSE, "-f", "compose.yaml", "-p", folder.name.lower(), "down"], cwd=folder, check=True, capture_output=True)
        if turn > 0:
            by_pipe.append(seconds[0])
            by_compose += seconds[1:]
    print(f"docker, {RANKS} containers to their first line: {shown('pipe', by_pipe)}; {shown('docker-compose up', by_compose) if by_compose else 'docker-compose is not there'}", flush=True)


def ranks_of(pipeline: str) -> list[int]:
    """Returns the process numbers of the ranks of a pipeline on this machine."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            variables = pathlib.Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
            if f"PIPE_PIPELINE={pipeline}".encode() in variables and pathlib.Path(f"/proc/{number}/cmdline").read_bytes().startswith(b"python3\0train.py"):
                found.append(int(number))
        except OSError:
            continue
    return found


def restart(folder: pathlib.Path):
    # The id ends with -ATTEMPT, and after a restart with -ATTEMPT-RESTART: the first ranks sleep until they are killed, the restarted ones end at once.
    program = PRINT_BEGIN + "if not os.environ['PIPE_RENDEZVOUS_ID'].endswith('-1-1'):\n    time.sleep(600)\n"
    for place, nodes in (("local", {"count": 1, "processes": RANKS}), ("docker", {"count": RANKS})):
        took = []
        for _ in range(ROUNDS):
            write(folder, {"nodes": {**nodes, "restarts": 1}}, program)
            process = start(folder, place)
            began(process.stdout, RANKS)
            victim = ranks_of("bench")[-1]
            killed = time.time()
            os.kill(victim, signal.SIGKILL)
            took.append(max(moment for moment, _ in began(process.stdout, RANKS)) - killed)
            process.communicate()
        print(f"restart in place, {place}, {RANKS} ranks, from the kill of one to the last first line: {shown('pipe', took)}", flush=True)


def main():
    print(", ".join(f"{name}: {value}" for name, value in machine.describe().items()) + f"; load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pipe-bench-gangs-") as name:
        folder = pathlib.Path(name)
        for part in PARTS:
            {"one": one, "local": local, "docker": docker, "restart": restart}[part](folder)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)


if __name__ == "__main__":
    main()
