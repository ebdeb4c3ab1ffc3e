"""Runs the commands of contestants in turn and measures them, so that other work of the machine affects all contestants alike."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from model import Absent, Command, Peer, Work


@dataclass
class Samples:
    """One contestant's runs; `absent` says why there are none."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    max_rss_kib: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)  # of a server, where it counts them
    absent: str = ""

    def median(self) -> float:
        return statistics.median(self.wall_s)


Contestants = dict[str, Callable[[], Command]]


class Failed(Absent):
    """A contestant ended with an error."""


class Bench:
    def __init__(self, tools: Path):
        self.measure = str(tools / "bench_measure")
        self.root = Path(tempfile.mkdtemp(prefix="pipe-bench-"))

    def folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.root))

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, command: Command) -> dict:
        """Runs the command once; raises Failed with the end of its output."""
        report, log = self.root / "report.json", self.root / "log"
        with log.open("wb") as out:
            code = subprocess.run([self.measure, str(report), *command.argv], cwd=command.cwd, env={**os.environ, **command.environment}, stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=out).returncode
        if code:
            tail = log.read_text(errors="replace").strip().splitlines()[-5:]
            raise Failed(f"`{' '.join(map(os.path.basename, command.argv[:2]))}` ended with exit code {code}: {' | '.join(tail)}")
        return json.loads(report.read_text())

    def alternate(self, contestants: Contestants, rounds: int, between: Callable[[], None] = lambda: None,
                  requests: Callable[[], int] | None = None) -> dict[str, Samples]:
        """Runs contestants in the order A B C A B C ... One that fails is left out from then on, with the reason."""
        samples = {name: Samples() for name in contestants}
        for number in range(rounds):
            for name, make_command in contestants.items():
                if samples[name].absent:
                    continue
                try:
                    command = make_command()
                    between()
                    sample = self.run(command)
                except Absent as reason:
                    samples[name] = Samples(absent=str(reason))
                    print(f"bench:   {name}: {reason}", file=sys.stderr)
                    continue
                samples[name].wall_s.append(sample["wall_s"])
                samples[name].cpu_s.append(sample["cpu_s"])
                samples[name].max_rss_kib.append(sample["max_rss_kib"])
                if requests:
                    samples[name].requests.append(requests())
                print(f"bench:   round {number + 1}: {name} {sample['wall_s'] * 1000:.1f} ms", file=sys.stderr)
        return samples


def fresh(bench: Bench, peer: Peer, work: Work) -> Callable[[], Command]:
    """Gives each run a new folder, so that nothing is left of the one before."""
    return lambda: peer.project(work, bench.folder())


def paired(samples: dict[str, Samples], name: str, other: str, compare: Callable[[float, float], float]) -> float | None:
    """Returns the median over all rounds of a comparison within each round."""
    if name not in samples or other not in samples or samples[name].absent or samples[other].absent:
        return None
    return statistics.median(map(compare, samples[name].wall_s, samples[other].wall_s))
