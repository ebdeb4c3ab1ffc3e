#!/usr/bin/env python3
"""Measures what pipe_ml costs: declaring steps, a function step beside a command step, a large array between steps.

Usage: PIPE=$PWD/build/release/bin/pipe bench/python.py [ROUNDS]     11 rounds of the two steps, and always three of the array; a minute or two on a quiet machine
pipe_ml reads PIPE: the program that runs the steps, by its absolute path. Where this Python has no numpy, a virtual environment gets one from the package index."""

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
import time
import pipe_ml as pl

@pl.step
def one(x: int = 1) -> int:
    return x

@pl.pipeline
def wide():
    for i in range(10_000):
        one(i)

@pl.pipeline
def exported():  # for the file of the function step
    one(1)

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


def python(folder, *words, program=sys.executable):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": f"{os.path.dirname(program)}:{os.environ['PATH']}"}
    return subprocess.run([program, *words], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def with_numpy(folder):
    """Returns a Python that has numpy, or an empty text where none can be had."""
    try:
        import numpy  # noqa: F401

        return sys.executable
    except ImportError:
        pass
    program = str(folder / "numpy/bin/python")
    subprocess.run([sys.executable, "-m", "venv", folder / "numpy"], check=True)
    done = subprocess.run([program, "-m", "pip", "-q", "--disable-pip-version-check", "install", "numpy"], check=False)
    return "" if done.returncode else program


def milliseconds(words, folder):
    """Returns how long a program took, by the clock and of a processor. As in a step, no bytecode is there from the time before."""
    start = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return (time.perf_counter() - start) * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def arrays(folder, size, program):
    """Returns the seconds of an array's way from a process to another, by numpy alone and between steps."""
    path = folder / "alone.npy"
    start = time.perf_counter()
    for code in ALONE:
        python(folder, "-c", code.replace("SIZE", size), str(path), program=program)
    alone = time.perf_counter() - start
    path.unlink()
    (folder / "arrays.py").write_text(ARRAYS.replace("SIZE", size))
    start = time.perf_counter()
    python(folder, "arrays.py", "run", "-o", "local", "--no-cache", program=program)
    steps = time.perf_counter() - start
    subprocess.run(["chmod", "-R", "u+w", folder / ".pipe"], check=True)  # artifacts are read-only
    shutil.rmtree(folder / ".pipe")
    return alone, steps


def main():
    sys.stdout.reconfigure(line_buffering=True)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pipe-bench-python-"))
    try:
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, a load of {os.getloadavg()[0]:.1f}")
        (folder / "program.py").write_text(PROGRAM)
        times = [list(map(float, python(folder, "program.py").split())) for _ in range(3)]
        print(f"10,000 steps: declared in {min(t[0] for t in times):.2f} s, declared again and written in {min(t[1] for t in times):.2f} s")
        python(folder, "-c", "import program; program.exported.export()")
        shutil.rmtree(folder / "__pipe__/__pycache__", ignore_errors=True)
        function = ["env", "PIPE_PARAM_X=1", "PIPE_OUTPUT_RESULT=r.json", sys.executable, "__pipe__/pipe_step.py", "__pipe__/program.one.py", "x=json", "->", "result:json"]
        command = [sys.executable, "-c", "import json, sys; json.dump(1, open(sys.argv[1], 'w'))", "r.json"]
        times = {"function": [], "command": []}
        for _ in range(rounds):
            for name, words in (("function", function), ("command", ["env", *command])):
                times[name].append(milliseconds(words, folder))
        for kind, number in (("by the clock", 0), ("of a processor", 1)):
            middle = {name: statistics.median(each[number] for each in values) for name, values in times.items()}
            print(f"a function step {middle['function']:.1f} ms {kind}, a command step {middle['command']:.1f} ms: {middle['function'] - middle['command']:.1f} ms above")
        program = with_numpy(folder)
        if not program:
            print("no numpy here: arrays are left out")
            return
        alone, steps = zip(*(arrays(folder, str(2 << 30), program) for _ in range(3)))
        print(f"2 GiB: np.save in a process and np.load in another {min(alone):.1f} s, two steps {min(steps):.1f} s: {min(steps) / min(alone):.2f} times")
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
