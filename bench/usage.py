"""Measures the costs of measuring steps: reading the kernel's counters at their end, samples while they run, and a million points of a metric."""

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

from measure import Bench, Samples
from model import IMAGE, Absent, Command

SHORT_STEP_MS, SHARE = 0.2, 0.005  # targets: the accounts of a short step, and the share of a CPU while one runs
MICRO = ("bench_micro_group_usage", "bench_micro_tree_memory")
TRAIN = """import sys
head = sys.argv[1]
for step in range(int(sys.argv[2])):
    print(head + ' {"metric": "loss", "value": %r, "step": %d}' % (1 / (step + 1), step))
"""


class Usage:
    def __init__(self, bench: Bench, section: Callable, quick: bool, program: str, tools: Path):
        self.bench, self.section, self.quick, self.program, self.tools = bench, section, quick, program, tools

    def measure(self) -> None:
        self.accounts()
        self.sleepers()
        self.points()

    def accounts(self) -> None:
        """Measures by Google Benchmark, whose figures are means of many calls."""
        samples: dict[str, Samples] = {}
        for name in MICRO:
            program = self.tools / name
            if not program.exists():
                samples[name] = Samples(absent="not built: Google Benchmark (libbenchmark-dev) is missing")
                continue
            words = [program, "--benchmark_format=json", f"--benchmark_repetitions={2 if self.quick else 9}"]
            for entry in json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)["benchmarks"]:
                if entry["run_type"] != "iteration":
                    continue
                if entry.get("error_occurred"):
                    samples[entry["run_name"]] = Samples(absent=entry["error_message"])
                    continue
                one = samples.setdefault(entry["run_name"], Samples())
                one.wall_s.append(entry["real_time"] / 1e6)
                one.cpu_s.append(entry["cpu_time"] / 1e6)
                one.max_rss_kib.append(0)
        self.section("What is read of a step: the accounts of a short one, and a sample of a long one (with so many workers)", samples, [],
                     target=("accounts_of_a_short_step", "wall", SHORT_STEP_MS))

    def sleepers(self) -> None:
        """Measures the CPU time of a run whose step sleeps, less that of a run whose step ends at once."""
        seconds = 5 if self.quick else 30
        contestants = {self.name(place, length): self.sleeper(place, length) for place in ("local", "docker") for length in (0, seconds)}
        samples = self.bench.alternate(contestants, 1 if self.quick else 3)
        notes = [self.share(place, seconds, samples) for place in ("local", "docker")]
        self.section(f"A run of one step with four processes that sleep {seconds} s", samples, [], notes=["", *notes])

    @staticmethod
    def name(place: str, seconds: int) -> str:
        return f"{place}, {seconds} s" if seconds else f"{place}, at once"

    def sleeper(self, place: str, seconds: int) -> Callable[[], Command]:
        line = " & ".join([f"sleep {seconds}"] * 3) + f" & sleep {seconds}; wait"
        return lambda: self.project(f"settings: {{docker: {{parent_image: '{IMAGE}', network: none}}}}\nsteps: {{sleep: {{command: '{line}'}}}}\n", place)

    def share(self, place: str, seconds: int, samples: dict[str, Samples]) -> str:
        short, long = samples[self.name(place, 0)], samples[self.name(place, seconds)]
        if short.absent or long.absent:
            return f"- {place}: absent: {short.absent or long.absent}"
        share = (statistics.median(long.cpu_s) - statistics.median(short.cpu_s)) / seconds
        return f"- {place}: {share * 100:.2f} % of a CPU while the step runs (target: at most {SHARE * 100:g} %: {'met' if share <= SHARE else '**missed**'})"

    def points(self) -> None:
        count = 50_000 if self.quick else 1_000_000
        contestants = {name: self.printer(head, count) for name, head in (("metrics", "@pipe"), ("lines of the same text without meaning", "#pipe"))}
        samples = self.bench.alternate(contestants, 1 if self.quick else 5)
        metrics, lines = samples.values()
        notes = []
        if not metrics.absent and not lines.absent:
            wall, cpu = (statistics.median(own / other for own, other in zip(getattr(metrics, kind), getattr(lines, kind))) for kind in ("wall_s", "cpu_s"))
            notes = ["", f"- Metrics take {wall:.2f} times the time and {cpu:.2f} times the CPU time (with the step's own) of the same lines."]
        self.section(f"A step that prints {count:,} points of a metric", samples, [], notes=notes)

    def printer(self, head: str, count: int) -> Callable[[], Command]:
        return lambda: self.project(f"steps: {{train: {{command: [python3, train.py, '{head}', '{count}']}}}}\n", "local", {"train.py": TRAIN})

    def project(self, pipeline: str, place: str, files: dict[str, str] | None = None) -> Command:
        """Writes a project into a new folder, and returns the command that runs it."""
        if place == "docker" and subprocess.run(["docker", "version"], capture_output=True).returncode:
            raise Absent("no Docker Engine answers")
        folder = self.bench.folder()
        for name, text in {"pipeline.yaml": "name: bench\n" + pipeline, **(files or {})}.items():
            (folder / name).write_text(text)
        return Command([self.program, "run", "pipeline.yaml", "--orchestrator", place, "--no-cache", "--state", ".pipe"], folder, dict(os.environ))
