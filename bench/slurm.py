"""Measures steps on a Slurm cluster beside a script as people write it by hand: an array of jobs, and a loop over squeue until the array has ended.
PIPE=... SLURM_CONF=... bench/slurm.py [STEPS [PART]...]

A PART is one of these; by default the first:
    race       STEPS (1,000) steps that do nothing: the time of both, how long after its last command a step's end was noticed, and the requests that the
               controller got meanwhile (sdiag)
    waiting    STEPS jobs that wait for nodes which somebody else has: the calls of sbatch and scancel, the requests of `pipe` to the controller in a
               minute, once all are submitted, and the memory of pipe. MaxJobCount of the cluster has to be above STEPS
    snakemake  50 such steps by Snakemake's plugin, which starts a Snakemake for each, beside pipe. SNAKEMAKE names the command of an environment with the
               packages snakemake and snakemake-executor-plugin-slurm
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("steps", type=int, nargs="?", default=1000)
parser.add_argument("parts", nargs="*", metavar="part")
options = parser.parse_args()
STEPS, PARTS = options.steps, options.parts or ["race"]
PIPE = os.environ.get("PIPE") or parser.error("the variable PIPE names the program")


def output(*words: str, **more) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def requests() -> int:
    """Returns the number of requests that the controller has answered since its counters were reset, those of nodes left out."""
    text = output("sdiag").split("Remote Procedure Call statistics by user")[0]
    return sum(int(count) for kind, count in re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\)\s+count:(\d+)", text))


def by_hand(folder: pathlib.Path) -> float:
    begin = time.monotonic()
    array = output("sbatch", "--parsable", f"--array=0-{STEPS - 1}", "--mem=100M", "--output=/dev/null", "--wrap", "true", cwd=folder).strip()
    while output("squeue", "-h", "-j", array):
        time.sleep(0.5)
    return time.monotonic() - begin


def start_pipe(folder: pathlib.Path, steps: int, stdout=subprocess.PIPE, **env) -> subprocess.Popen:
    step = {"matrix": {"i": list(range(steps))}, "command": "date +%s.%N", "settings": {"resources": {"memory": "100MiB"}}}  # without it, a job has all memory of a node
    (folder / "pipeline.yaml").write_text(json.dumps({"name": "bench", "steps": {"step": step}}))
    return subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "slurm", "--no-cache", "--jobs", str(steps), "--output", "json"], cwd=folder, text=True,
                            stdout=stdout, env={**os.environ, "PIPE_HOME": str(folder / "state"), **env})


def counted(folder: pathlib.Path, *programs: str) -> str:
    """Returns a PATH with which each call of these programs appends a line to the file of its name."""
    (folder / "bin").mkdir()
    for program in programs:
        (folder / "bin" / program).write_text(f"#!/bin/sh\necho >> {folder}/{program}\nexec {shutil.which(program)} \"$@\"\n")
        (folder / "bin" / program).chmod(0o755)
    return f"{folder}/bin:{os.environ['PATH']}"


def calls(folder: pathlib.Path, program: str) -> int:
    file = folder / program
    return len(file.read_text().splitlines()) if file.exists() else 0


def by_pipe(folder: pathlib.Path, steps: int) -> tuple[float, list[float]]:
    """Returns the seconds of the run, and how long after its last command the end of each step was noticed."""
    begin = time.monotonic()
    process = start_pipe(folder, steps)
    ended, noticed = {}, []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step_log":
            ended[event["step"]] = float(event["line"]) if re.fullmatch(r"[\d.]+", event["line"]) else time.time()
        elif event["event"] == "step_finished" and event["step"] in ended:
            noticed.append(time.time() - ended[event["step"]])
    if process.wait() != 0:
        sys.exit(f"pipe ended with {process.returncode}")
    return time.monotonic() - begin, noticed


def race(folder: pathlib.Path):
    subprocess.run(["sdiag", "--reset"], check=False, stdout=subprocess.DEVNULL)
    hand_seconds = by_hand(folder)
    asked_by_hand = requests()
    subprocess.run(["sdiag", "--reset"], check=False, stdout=subprocess.DEVNULL)
    pipe_seconds, noticed = by_pipe(folder, STEPS)
    print(f"{STEPS} steps: an array by hand {hand_seconds:.1f} s, pipe {pipe_seconds:.1f} s ({pipe_seconds / hand_seconds:.2f} x); an end is noticed after {statistics.median(noticed):.2f} s "
          f"(median; slowest {max(noticed):.2f} s); requests to the controller: {asked_by_hand} and {requests()}", flush=True)


def waiting(folder: pathlib.Path):
    nodes = int(output("sinfo", "-h", "-o", "%D", "-p", "main"))
    others = output("sbatch", "--parsable", f"--array=1-{nodes}", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600").strip()
    try:
        process = start_pipe(folder, STEPS, subprocess.DEVNULL, PATH=counted(folder, "sbatch", "scancel"))
        begin = time.monotonic()
        while len(output("squeue", "-h", "-r", "-t", "PENDING", "-o", "%i").splitlines()) < STEPS:
            time.sleep(1)
        submitted = time.monotonic() - begin
        time.sleep(10)  # the pause between two questions grows
        subprocess.run(["sdiag", "--reset"], check=False, stdout=subprocess.DEVNULL)
        time.sleep(60)
        asked = requests()
        memory = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) // 1024
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        process.wait()
        took = time.monotonic() - begin
        print(f"{STEPS} waiting jobs: submitted in {submitted:.1f} s by {calls(folder, 'sbatch')} calls of sbatch; {asked} requests to the controller in a minute; "
              f"{memory} MiB of memory at most; Ctrl-C cancels them in {took:.1f} s by {calls(folder, 'scancel')} calls of scancel", flush=True)
    finally:
        output("scancel", others)


def by_snakemake(folder: pathlib.Path, steps: int) -> float:
    (folder / "Snakefile").write_text(f"rule all:\n  input: expand('{{i}}.txt', i=range({steps}))\nrule step:\n  output: '{{i}}.txt'\n  shell: 'date >{{output}}'\n")
    srun = folder / "bin/srun"  # the plugin's jobs do not have SLURM_CONF
    srun.parent.mkdir()
    srun.write_text(f"#!/bin/sh\nSLURM_CONF={os.environ['SLURM_CONF']} exec {shutil.which('srun')} \"$@\"\n")
    srun.chmod(0o755)
    # The plugin would ask sacct; squeue suffices if it is asked before the controller forgets an ended job (MinJobAge). The plugin's own pause is 40 s.
    words = ["--executor", "slurm", "--jobs", str(steps), "--slurm-no-account", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "15",
             "--default-resources", "slurm_partition=main", "mem_mb=50", "runtime=10", "--latency-wait", "10"]
    begin = time.monotonic()
    done = subprocess.run([os.environ["SNAKEMAKE"], *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PATH": f"{srun.parent}:{os.environ['PATH']}"})
    if done.returncode != 0:
        sys.exit(f"Snakemake ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return time.monotonic() - begin


def snakemake(folder: pathlib.Path):
    steps = 50
    pipe_seconds, _ = by_pipe(folder, steps)
    snakemake_seconds = by_snakemake(folder, steps)
    print(f"{steps} steps: pipe {pipe_seconds:.1f} s, Snakemake's plugin {snakemake_seconds:.1f} s", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="pipe-bench-slurm-") as name:
        folder = pathlib.Path(name)
        for part in PARTS:
            {"race": race, "waiting": waiting, "snakemake": snakemake}[part](folder)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)


if __name__ == "__main__":
    main()
