#!/usr/bin/env python3
"""Measures `pipe` beside its peers in one run and writes a table (Markdown) and every sample (JSON). See README.md; `scripts/bench` prepares all it needs."""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.dont_write_bytecode = True
import machine
import model
from data import Data
from images import Images
from measure import Bench, Samples, fresh
from model import Absent, Command, Peer
from pages import Pages
from peers.bare_uv import BareUv
from peers.cluster import Kubectl, PipeOnCluster, StandInCluster
from peers.dsl import EMPTY, HEADER, JSON, PIPELINE, Dsl, by_hand, compile_command, copied, emptied, standard_headers
from peers.make import Make
from peers.ninja import Ninja
from peers.pipe import Pipe
from peers.raw_engine import RawEngine, body_like
from peers.snakemake import Snakemake
from peers.zenml import ZenML
from report import Section, markdown, read
from usage import Usage

SECTIONS = ("start", "processes", "plan", "noop", "containers", "zenml", "images", "dsl", "cluster", "pages", "usage", "data")


class Runner:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.bench = Bench(options.tools)
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.measuring, self.taken = "", ""
        earlier = options.out.with_suffix(".json")
        text = earlier.read_text() if earlier.exists() else '{"sections": []}'
        self.sections: list[Section] = read(text)
        self.earlier = json.loads(text)  # who took part in the sections that stay

    def write(self, about: dict[str, str]) -> None:
        options = self.options
        versions = {**self.earlier.get("versions", {}), **self.versions}
        absent = {name: why for name, why in {**self.earlier.get("absent", {}), **self.absent}.items() if name not in versions}
        options.out.write_text(markdown(about, versions, absent, self.sections))
        options.out.with_suffix(".json").write_text(
            json.dumps({"machine": about, "versions": versions, "absent": absent, "sections": [asdict(section) for section in self.sections]}, indent=1) + "\n")

    def have(self, *peers: Peer) -> list[Peer]:
        """Returns the peers that can run here, and records why others cannot."""
        for peer in peers:
            if peer.name in self.versions or peer.name in self.absent:
                continue
            try:
                self.versions[peer.name] = peer.version()
            except Absent as reason:
                self.absent[peer.name] = str(reason)
        return [peer for peer in peers if peer.name in self.versions]

    def section(self, title: str, samples: dict[str, Samples], wanted: list[Peer], **options) -> None:
        for peer in wanted:
            if peer.name not in samples:
                samples[peer.name] = Samples(absent=self.absent.get(peer.name, "not run"))
        self.sections.append(Section(title, samples, name=self.measuring, taken=self.taken, **options))

    def measure(self, name: str, work: Callable[[], None]) -> None:
        """Measures by `work`, whose sections replace those of this name in the report."""
        print(f"bench: {name}", file=sys.stderr)
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.measuring, self.taken = name, f"{moment} on {machine.describe()['CPU']}, load before {Path('/proc/loadavg').read_text().split()[0]}" + (", --quick" if self.options.quick else "")
        self.sections = [section for section in self.sections if section.name != name]
        work()
        self.sections.sort(key=lambda section: SECTIONS.index(section.name))

    def start(self, peers: list[Peer]) -> None:
        commands = {peer.name: Command(peer.version_command(), self.bench.root) for peer in self.have(*peers)}
        commands["docker"] = Command(["docker", "--version"], self.bench.root)
        samples = self.bench.alternate({name: lambda command=command: command for name, command in commands.items()}, 5 if self.options.quick else 21)
        self.section("Start: `--version`", samples, peers, target=("pipe", "wall", 3.0))

    def processes(self, peers: list[Peer]) -> None:
        count = 200 if self.options.quick else 1000
        for work, rounds in ((model.wide("process", count), 5), (model.chain("process", count), 5), (model.wide("process", 10 * count), 3)):
            contestants = {peer.name: fresh(self.bench, peer, work) for peer in self.have(*peers)}
            samples = self.bench.alternate(contestants, 2 if self.options.quick else rounds)
            steps = len(work.steps)
            target = ("pipe", "wall", 12_000.0) if steps == 10_000 else None
            self.section(f"{steps:,} processes `true`, {work.shape}, {work.jobs} at a time, fresh", samples, peers, steps=steps, target=target)

    def plan(self, peers: list[Peer]) -> None:
        count = 10_000 if self.options.quick else 100_000
        for work in (model.wide("process", count), model.columns("extend", count, count // 10), model.matrix("process", count)):
            contestants = {}
            for peer in self.have(*peers):
                try:
                    command = peer.plan(work, self.bench.folder())
                    contestants[peer.name] = lambda command=command: command
                except NotImplementedError:
                    pass  # it has no matrix
            samples = self.bench.alternate(contestants, 2 if self.options.quick else 5)
            self.section(f"What would run of {count:,} steps ({work.shape}), of which none has run", samples, [], target=("pipe", "wall", 1000.0))

    def noop(self, peers: list[Peer]) -> None:
        for count in (1000,) if self.options.quick else (1000, 10000):
            work = model.columns("extend", count, count // 10)
            commands, samples = {}, {}
            for peer in self.have(*peers):
                print(f"bench:   first run of {count} steps: {peer.name}", file=sys.stderr)
                try:
                    commands[peer.name] = peer.make_done(work, self.bench.folder(), self.bench.run)
                except Absent as reason:
                    samples[peer.name] = Samples(absent=str(reason))
            time.sleep(3)  # files that changed in the last two seconds may rightly be read again
            for command in commands.values():  # what is written once, after a first run, does not belong to the figures of the second
                self.bench.run(command)
            samples |= self.bench.alternate({name: lambda command=command: command for name, command in commands.items()}, 5 if self.options.quick else 11)
            target = ("pipe", "wall", 50.0) if count == 10000 else None
            self.section(f"Nothing to do: second run of {count:,} steps that write a file each ({work.shape})", samples, peers, target=target)

    def containers(self, peers: list[Peer], raw: RawEngine, pipe: Pipe) -> None:
        count = 10 if self.options.quick else 50
        floors = self.have(raw)
        if floors and self.have(pipe):
            try:
                floors.append(RawEngine(self.options.tools, "raw API, same options", same_options(self.bench, pipe)))
            except Absent as reason:
                self.absent["raw API, same options"] = str(reason)
        for work in (model.wide("container", count), model.chain("container", count)):
            contestants = {peer.name: fresh(self.bench, peer, work) for peer in self.have(*peers[:1]) + floors + self.have(*peers[1:])}
            samples = self.bench.alternate(contestants, 2 if self.options.quick else 5)
            at_a_time = "one at a time" if work.shape == "chain" else f"{work.jobs} at a time"
            floor = "raw API, same options" if floors[1:] else raw.name
            self.section(f"{count} containers `true`, {work.shape}, {at_a_time}, network none", samples, [*peers, raw], steps=count, floor=floor,
                         target=("pipe", "above floor", 5.0))

    def zenml(self, pipe: Pipe, zenml: ZenML) -> None:
        work = model.chain("container", 5)
        contestants = {peer.name: fresh(self.bench, peer, work) for peer in self.have(pipe, zenml)}
        samples = self.bench.alternate(contestants, 1 if self.options.quick else 3, between=zenml.clean_up)
        zenml.clean_up()
        self.section("5 container steps, chain, ready image: ZenML's local Docker orchestrator", samples, [pipe, zenml], steps=5,
                     target=("zenml", "ratio", 10.0))

    def images(self, pipe: Pipe, zenml: ZenML, bare: BareUv) -> None:
        self.have(pipe, bare)
        Images(self.bench, self.section, self.options.quick, pipe, zenml if self.have(zenml) else None, bare).measure()

    def usage(self, pipe: Pipe) -> None:
        if self.have(pipe):
            Usage(self.bench, self.section, self.options.quick, pipe.program, self.options.tools).measure()

    def dsl(self, dsl: Dsl, pipe: Pipe) -> None:
        bench, rounds = self.bench, 2 if self.options.quick else 5
        include = Path(__file__).resolve().parent.parent / "include"
        texts = {"an empty file": EMPTY, "the standard headers that it includes": standard_headers(include), "nlohmann/json.hpp": JSON,
                 "pipeline/pipeline.hpp": HEADER, "a pipeline of two functions": PIPELINE}
        for title, flags in (("read, `-fsyntax-only`", ["-fsyntax-only"]), ("compiled, `-O2 -c`", ["-O2", "-c"])):
            contestants = {name: lambda text=text, flags=flags: compile_command(text, flags, bench.folder(), include) for name, text in texts.items()}
            target = ("a pipeline of two functions", "wall", 2500) if "-O2" in flags else ("pipeline/pipeline.hpp", "wall", 2000)
            self.section(f"The header for C++ programs, {title}", bench.alternate(contestants, rounds), [], target=target)
        if not self.have(dsl):
            return self.section("Functions as steps", {}, [dsl])

        count = 50 if self.options.quick else 200
        floor = "the program started, nothing done"
        contestants = {dsl.name: lambda: dsl.run("chain", bench.folder(), steps=count), floor: lambda: dsl.spawn(count, bench.folder())}
        self.section(f"{count} functions as processes, each given the result of the one before", bench.alternate(contestants, rounds), [dsl], steps=count,
                     floor=floor)

        count = 5 if self.options.quick else 20
        contestants, floor = {dsl.name: lambda: dsl.run("chain", bench.folder(), "docker", steps=count)}, "raw API, same options and image, nothing done"
        try:
            raw = RawEngine(self.options.tools, floor, same_program(bench, dsl))
            contestants[floor] = lambda: raw.project(model.chain("container", count), bench.folder())
        except Absent as reason:
            self.absent[floor] = str(reason)
        self.section(f"{count} functions in containers, each given the result of the one before", bench.alternate(contestants, 2 if self.options.quick else 5),
                     [dsl], steps=count, floor=floor)

        pipe.clean_up()
        place = bench.root / "gibibyte"
        limits = ["prlimit", f"--data={128 << 20}"]
        contestants = {
            "pl::Array": lambda: dsl.run("array", emptied(place)),
            "pl::Array, 128 MiB of private memory a process": lambda: dsl.run("array", emptied(place), limits=limits),
            "std::vector": lambda: dsl.run("vector", emptied(place)),
            "dd, openssl dgst, cat": lambda: by_hand(emptied(place)),
            "dd, cp, cat": lambda: copied(emptied(place)),
        }
        self.section("1 GiB from one function to the next: made, stored under its digest, summed up (peak MiB: with pages of files)",
                     bench.alternate(contestants, 1 if self.options.quick else 3), [])
        emptied(place)

    def pages(self, pipe: Pipe) -> None:
        self.have(pipe)
        try:
            Pages(self.bench, self.section, self.options.quick, pipe.program).measure()
        except Absent as reason:
            self.section("Pages: targets", {"pipe": Samples(absent=str(reason))}, [])

    def data(self, stager: Path) -> None:
        try:
            Data(self.bench, self.section, self.options.quick, stager).measure()
        except Absent as reason:
            self.section("Files through an S3 server", {"pipe's stager": Samples(absent=str(reason))}, [])

    def cluster(self, program: str) -> None:
        sizes = (100, 300) if self.options.quick else (300, 1000, 10000)
        try:
            with StandInCluster(program, self.bench.folder(), nodes=20) as cluster:
                peers = [PipeOnCluster(program, cluster), Kubectl(cluster)]
                for count in sizes:
                    contestants = {peer.name: lambda peer=peer, count=count: peer.fan_out(count, self.bench.folder()) for peer in peers}
                    if count != sizes[0]:
                        contestants.pop(Kubectl.name)  # its wait asks for each Job by itself, four a second
                    samples = self.bench.alternate(contestants, 1, requests=cluster.requests)
                    self.section(f"{count:,} steps `true` as Jobs of a cluster, wide, 100 at a time; its nodes are stand-ins that end each pod at once", samples, [],
                                 steps=count)
        except Absent as reason:
            self.section("Steps as Jobs of a cluster", {PipeOnCluster.name: Samples(absent=str(reason))}, [])


def same_options(bench: Bench, pipe: Pipe) -> dict:
    """Returns the options of pipe's containers, read from one that is running."""
    folder = bench.folder()
    command = pipe.project(model.wide("container", 1), folder)
    file = folder / "pipeline.yaml"
    file.write_text(file.read_text().replace('["true"]', '[sleep, "30.125"]'))
    return body_like(running_container(command, "30.125"), bench.folder(), ["true"])


def same_program(bench: Bench, dsl: Dsl) -> dict:
    """Returns the options of the container of a function, in which the program ends at once."""
    inspected = running_container(dsl.run("sleeps", bench.folder(), "docker"), "sleeps")
    words = [inspected["Path"], *inspected["Args"]]
    return body_like(inspected, bench.folder(), [*words[: words.index("--pipe-step")], "--nothing"])


def running_container(command: Command, word: str) -> dict:
    """Runs the command until it has started a container with this word among its arguments, and returns the engine's description of that container."""
    before = set(container_ids())
    process = subprocess.Popen(command.argv, cwd=command.cwd, env={**os.environ, **command.environment}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            found = set(container_ids("--filter", "status=running")) - before
            for text in (subprocess.run(["docker", "inspect", one], capture_output=True, text=True).stdout for one in found):
                inspected = json.loads(text or "[]")
                if inspected and word in inspected[0]["Args"]:
                    return inspected[0]
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise Absent("no running container of pipe's was seen")
    finally:
        process.terminate()
        process.wait()


def container_ids(*filters: str) -> list[str]:
    return subprocess.run(["docker", "ps", "-q", "--no-trunc", *filters], capture_output=True, text=True).stdout.split()


def main() -> int:
    root = Path(__file__).resolve().parent
    build = root.parent / "build/release"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, few rounds: does the harness work?")
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of %(default)s; the other sections of an earlier report stay")
    parser.add_argument("--build", type=Path, default=build, help="the build folder, with pipe and the target bench_tools (default: build/release)")
    parser.add_argument("--out", type=Path, default=root / "RESULTS.md", help="the table; the samples go beside it as .json")
    options = parser.parse_args()
    options.build = options.build.resolve()  # contestants run in folders of their own
    options.tools = options.build / "bin"
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"--only knows {', '.join(SECTIONS)}; not {', '.join(unknown)}")

    pipe, ninja, make, snakemake, zenml, raw = Pipe(options.tools / "pipe", build_type(options.build)), Ninja(), Make(), Snakemake(), ZenML(), RawEngine(options.tools)
    runner = Runner(options)
    about = machine.describe()
    measures = {
        "start": lambda: runner.start([pipe, ninja, snakemake, zenml]),
        "processes": lambda: runner.processes([pipe, ninja, make]),
        "plan": lambda: runner.plan([pipe, ninja]),
        "noop": lambda: runner.noop([pipe, ninja, snakemake]),
        "containers": lambda: runner.containers([pipe, ninja, snakemake], raw, pipe),
        "zenml": lambda: runner.zenml(pipe, zenml),
        "images": lambda: runner.images(pipe, zenml, BareUv()),
        "cluster": lambda: runner.cluster(pipe.program),
        "pages": lambda: runner.pages(pipe),
        "usage": lambda: runner.usage(pipe),
        "data": lambda: runner.data(options.build / "lib/pipe_stager"),
        "dsl": lambda: runner.dsl(Dsl(options.tools), pipe),
    }
    try:
        for name in SECTIONS:
            if name in wanted:
                runner.measure(name, measures[name])
                runner.write(about)
    finally:
        runner.bench.close()
    print(options.out.read_text())
    return 0 if pipe.name in runner.versions else 1


def build_type(build: Path) -> str:
    cache = build / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    return next((line.split("=", 1)[1] for line in lines if line.startswith("CMAKE_BUILD_TYPE:")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
