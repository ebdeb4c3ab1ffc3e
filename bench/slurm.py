"""Steps on a Slurm cluster, beside what anybody would write by hand: an array of jobs, and a loop over squeue until it has ended. PIPE=... SLURM_CONF=... bench/slurm.py [STEPS]

Prints the time of both, how long after its last command a step's end was noticed, and the requests that the controller got meanwhile (sdiag)."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
PIPE = os.environ["PIPE"]


def output(*words: str, **more) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def requests() -> int:
    """Requests that the controller has answered since the counters were reset, those of nodes left out."""
    text = output("sdiag").split("Remote Procedure Call statistics by user")[0]
    return sum(int(count) for kind, count in re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\)\s+count:(\d+)", text))


def by_hand(folder: pathlib.Path) -> float:
    begin = time.monotonic()
    array = output("sbatch", "--parsable", f"--array=0-{STEPS - 1}", "--output=/dev/null", "--wrap", "true", cwd=folder).strip()
    while output("squeue", "-h", "-j", array):
        time.sleep(0.5)
    return time.monotonic() - begin


def by_pipe(folder: pathlib.Path) -> tuple[float, list[float]]:
    step = {"matrix": {"i": list(range(STEPS))}, "command": "date +%s.%N"}
    (folder / "pipeline.yaml").write_text(json.dumps({"name": "bench", "steps": {"step": step}}))
    begin = time.monotonic()
    process = subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "slurm", "--jobs", str(STEPS), "--output", "json"], cwd=folder, text=True,
                               stdout=subprocess.PIPE, env={**os.environ, "PIPE_HOME": str(folder / "state")})
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


def main():
    with tempfile.TemporaryDirectory(prefix="pipe-bench-slurm-") as name:
        folder = pathlib.Path(name)
        subprocess.run(["sdiag", "--reset"], check=False)
        hand = by_hand(folder)
        asked_by_hand = requests()
        subprocess.run(["sdiag", "--reset"], check=False)
        ours, noticed = by_pipe(folder)
        print(f"{STEPS} steps: an array by hand {hand:.1f} s, pipe {ours:.1f} s ({ours / hand:.2f} x); an end is noticed after {statistics.median(noticed):.2f} s "
              f"(median; slowest {max(noticed):.2f} s); requests to the controller: {asked_by_hand} and {requests()}")
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)


if __name__ == "__main__":
    main()
