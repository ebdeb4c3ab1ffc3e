#!/usr/bin/env python3
"""Measures what pipe_ml costs: declaring steps, a function step beside a command step, a large array between steps. Usage: PIPE=build/release/bin/pipe bench/python.py [ROUNDS]"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = """
import sys, time
import pipe_ml as pl

@pl.step
def one(x: int = 1) -> int:
    return x

@pl.pipeline
def wide():
    for i in range(10_000):
        one(i)

@pl.pipeline
def chain():
    one(1)
    pl.command("command", [sys.executable, "-c", "import json, sys; json.dump(1, open(sys.argv[1], 'w'))", "${outputs.result}"])

if __name__ == "__main__":
    start = time.perf_counter()
    document = wide.document()
    declared = time.perf_counter()
    wide.write()
    print(declared - start, time.perf_counter() - declared)
"""
ALONE = ("import sys, numpy as np\nnp.save(sys.argv[1], np.ones(SIZE, dtype='uint8'))", "import sys, numpy as np\nassert np.load(sys.argv[1], mmap_mode='c').sum() == SIZE")
ARRAYS = """
import numpy as np
import pipe_ml as pl

@pl.step
def make() -> np.ndarray:
    return np.ones(SIZE, dtype="uint8")

@pl.step
def use(array: np.ndarray) -> int:
    return int(array.sum())

@pl.pipeline
def arrays():
    use(make())

if __name__ == "__main__":
    arrays.main()
"""


def python(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def milliseconds(words, folder):
    """Returns how long a program took, by the clock and of a processor."""
    start = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return (time.perf_counter() - start) * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def arrays(folder, size):
    """Returns the seconds of an array's way from a process to another, by numpy alone and between steps."""
    path = folder / "alone.npy"
    start = time.perf_counter()
    for program in ALONE:
        python(folder, "-c", program.replace("SIZE", size), str(path))
    alone = time.perf_counter() - start
    path.unlink()
    (folder / "arrays.py").write_text(ARRAYS.replace("SIZE", size))
    start = time.perf_counter()
    python(folder, "arrays.py", "run", "-o", "local", "--no-cache")
    steps = time.perf_counter() - start
    subprocess.run(["chmod", "-R", "u+w", folder / ".pipe"], check=True)  # artifacts are read-only
    shutil.rmtree(folder / ".pipe")
    return alone, steps


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pipe-bench-python-"))
    try:
        (folder / "program.py").write_text(PROGRAM)
        times = [list(map(float, python(folder, "program.py").split())) for _ in range(3)]
        print(f"10,000 steps: declared in {min(t[0] for t in times):.2f} s, declared again and written in {min(t[1] for t in times):.2f} s")
        python(folder, "-c", "import program; program.chain.export()")
        function = ["env", "PIPE_PARAM_X=1", "PIPE_OUTPUT_RESULT=r.json", sys.executable, "__pipe__/pipe_step.py", "__pipe__/program.one.py", "x=json", "->", "result:json"]
        command = [sys.executable, "-c", "import json, sys; json.dump(1, open(sys.argv[1], 'w'))", "r.json"]
        times = {"function": [], "command": []}
        for _ in range(rounds):
            for name, words in (("function", function), ("command", ["env", *command])):
                times[name].append(milliseconds(words, folder))
        for kind, number in (("by the clock", 0), ("of a processor", 1)):
            middle = {name: statistics.median(each[number] for each in values) for name, values in times.items()}
            print(f"a function step {middle['function']:.1f} ms {kind}, a command step {middle['command']:.1f} ms: {middle['function'] - middle['command']:.1f} ms above")
        try:
            import numpy  # noqa: F401
        except ImportError:
            print("no numpy here: arrays are left out")
            return
        alone, steps = zip(*(arrays(folder, str(2 << 30)) for _ in range(3)))
        print(f"2 GiB: np.save in a process and np.load in another {min(alone):.1f} s, two steps {min(steps):.1f} s: {min(steps) / min(alone):.2f} times")
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
