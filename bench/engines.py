"""What one light requirement more costs on several engines, in turn: seconds of the whole run, and bytes that the engine's layers grow by.

Usage: engines.py [--pipe PROGRAM] [--rounds N] NAME=ENDPOINT[,classic]...     prints a table. An ENDPOINT is a value of DOCKER_HOST; `classic` builds
without BuildKit (DOCKER_BUILDKIT=0). The engines have to have python:3.11-slim-bookworm.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from images import BASE, LIGHT
from peers.pipe import Pipe


class Engine:
    def __init__(self, pipe: Pipe, word: str):
        self.name, _, where = word.partition("=")
        self.endpoint, _, builder = where.partition(",")
        self.variables = {**os.environ, "DOCKER_HOST": self.endpoint, "DOCKER_BUILDKIT": "0" if builder == "classic" else "1"}
        self.pipe, self.folder, self.mark = pipe, Path(tempfile.mkdtemp(prefix="pipe-bench-")), str(time.time_ns())
        self.more: list[float] = []
        self.same: list[float] = []
        self.grown: list[int] = []

    def seconds(self, requirements: list[str]) -> float:
        command = self.pipe.image_project(self.folder, requirements, self.mark)
        begin = time.monotonic()
        subprocess.run(command.argv, cwd=command.cwd, env={**self.variables, **command.environment}, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    def layer_bytes(self) -> int:
        where = ["--unix-socket", self.endpoint.removeprefix("unix://"), "http://engine"] if self.endpoint.startswith("unix://") else [self.endpoint.replace("tcp://", "http://")]
        out = subprocess.run(["curl", "-fsS", *where[:-1], where[-1] + "/system/df"], check=True, capture_output=True, text=True).stdout
        return json.loads(out)["LayersSize"]

    def round(self, requirement: str) -> None:
        before = self.layer_bytes()
        self.more.append(self.seconds([*BASE, requirement]))
        self.grown.append(self.layer_bytes() - before)
        self.same.append(self.seconds([*BASE, requirement]))

    def clean_up(self) -> None:
        images = subprocess.run(["docker", "images", "-q", "--filter", "reference=pipe-bench"], env=self.variables, capture_output=True, text=True).stdout.split()
        if images:
            subprocess.run(["docker", "rmi", "-f", *images], env=self.variables, capture_output=True)

    def row(self, first: float) -> str:
        more, same = statistics.median(self.more), statistics.median(self.same)
        return f"| {self.name} | {first:.1f} s | {more:.1f} s | {more - same:.1f} s | {statistics.median(self.grown) / 1e6:.1f} MB |"


def main() -> None:
    build = Path(__file__).resolve().parent.parent / "build/release/bin/pipe"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipe", type=Path, default=build)
    parser.add_argument("--rounds", type=int, default=len(LIGHT))
    parser.add_argument("engines", nargs="+", metavar="NAME=ENDPOINT[,classic]")
    options = parser.parse_args()
    pipe = Pipe(options.pipe.resolve(), "release")
    engines = [Engine(pipe, word) for word in options.engines]
    try:
        first = [engine.seconds(BASE) for engine in engines]
        for requirement in LIGHT[: options.rounds]:
            for engine in engines:
                engine.round(requirement)
        print("| engine | first | one light requirement more | above unchanged | new layers |\n|---|---:|---:|---:|---:|")
        for engine, seconds in zip(engines, first):
            print(engine.row(seconds))
    finally:
        for engine in engines:
            engine.clean_up()


if __name__ == "__main__":
    main()
