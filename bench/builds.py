"""Compares two builds of `pipe`: start, processes, containers, plan and a second run, in turn. Prints a table; what hardening costs is measured with it (docs/reliability.md).

Usage: builds.py [--quick] [--protected] [--tools FOLDER] NAME=PROGRAM NAME=PROGRAM     the last columns are the first over the second, medians of the rounds.
FOLDER has bench_measure (default: build/release/bin). --protected measures what protections against hostile images and caches touch instead: containers, and
environments whose packages are in the caches.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import machine
import model
from images import BASE, LIGHT
from measure import Bench, fresh
from model import Command
from peers.pipe import Pipe, PipeLocal
from peers.venv import first_line


class Build(Pipe):
    def __init__(self, word: str):
        self.name, _, program = word.partition("=")
        super().__init__(Path(program).resolve(), "")

    def version(self) -> str:
        return first_line(self.version_command())


def works(bench: Bench, builds: list[Build], quick: bool):
    """A measurement: its title, its number of rounds, and what each build does in a round."""
    count, many = (100, 1_000) if quick else (1_000, 100_000)
    yield "`--version`", 3 if quick else 41, {build.name: lambda build=build: Command(build.version_command(), bench.root) for build in builds}
    for work in (model.wide("process", count), model.chain("process", count)):
        yield f"{count:,} processes `true`, {work.shape}", 2 if quick else 11, {build.name: fresh(bench, build, work) for build in builds}
    for work in (model.wide("container", 5 if quick else 50), model.chain("container", 5 if quick else 50)):
        yield f"{len(work.steps):,} containers `true`, {work.shape}", 2 if quick else 5, {build.name: fresh(bench, build, work) for build in builds}
    for work in (model.wide("process", many), model.columns("extend", many, many // 10), model.matrix("process", many)):
        plans = {build.name: build.plan(work, bench.folder()) for build in builds}
        yield f"the plan of {many:,} steps ({work.shape})", 2 if quick else 11, {name: lambda command=command: command for name, command in plans.items()}
    work = model.columns("extend", count, count // 10)
    done = {build.name: build.make_done(work, bench.folder(), bench.run) for build in builds}
    time.sleep(3)
    yield f"a second run of {count:,} steps, nothing to do", 3 if quick else 41, {name: lambda command=command: command for name, command in done.items()}


def protected_works(bench: Bench, builds: list[Build], quick: bool):
    count, rounds = (5, 1) if quick else (50, len(LIGHT))
    for work in (model.wide("container", count), model.chain("container", count)):
        yield f"{count} containers `true`, {work.shape}", 2 if quick else 7, {build.name: fresh(bench, build, work) for build in builds}
    mark = str(time.time_ns())
    for kind, peers in (("an image", builds), ("a virtual environment", [PipeLocal(build, bench.folder()) for build in builds])):
        projects = {}
        for build, peer in zip(builds, peers):
            projects[build.name] = lambda requirements, peer=peer, folder=bench.folder(), name=build.name: peer.image_project(folder, requirements, f"{mark}-{name}")
            bench.run(projects[build.name](BASE))  # Fills the caches, and writes the lock.
        turns = {name: iter(LIGHT) for name in projects}
        yield f"{kind} of {len(BASE)} packages, one requirement more", rounds, \
            {name: lambda name=name: projects[name]([*BASE, next(turns[name])]) for name in projects}
        yield f"{kind} of {len(BASE)} packages, unchanged", 2 if quick else 11, {name: lambda name=name: projects[name]([*BASE, LIGHT[rounds - 1]]) for name in projects}
    for build in builds:
        build.clean_up()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, few rounds")
    parser.add_argument("--protected", action="store_true", help="containers and environments instead")
    parser.add_argument("--tools", type=Path, default=Path(__file__).resolve().parents[1] / "build/release/bin")
    parser.add_argument("builds", nargs=2, type=Build, metavar="NAME=PROGRAM")
    options = parser.parse_args()
    bench = Bench(options.tools.resolve())
    first, second = options.builds
    print(f"{machine.describe()['CPU']}; {first.name}: {first.version()}; {second.name}: {second.version()}\n")
    print(f"|  | {first.name}: wall ms | {second.name}: wall ms | {first.name}: CPU ms | {second.name}: CPU ms | wall | CPU |\n|---|---:|---:|---:|---:|---:|---:|")
    try:
        for title, rounds, contestants in (protected_works if options.protected else works)(bench, options.builds, options.quick):
            samples = bench.alternate(contestants, rounds)
            one, other = samples[first.name], samples[second.name]
            if one.absent or other.absent:
                print(f"{title}: {one.absent or other.absent}", file=sys.stderr)
                return 1
            ratios = [statistics.median(a / b for a, b in zip(getattr(one, what), getattr(other, what))) for what in ("wall_s", "cpu_s")]
            medians = [1000 * statistics.median(getattr(build, what)) for what in ("wall_s", "cpu_s") for build in (one, other)]
            print(f"| {title} | " + " | ".join(f"{ms:,.2f}" if ms < 10 else f"{ms:,.0f}" for ms in medians) + f" | {ratios[0]:.3f} | {ratios[1]:.3f} |", flush=True)
    finally:
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
