"""Measures what a change of the requirements costs: time, bytes on the engine's disk and bytes at a registry. The last table has the targets."""

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from measure import Bench, Samples
from model import Command, Peer
from peers.bare_uv import BareUv
from peers.counting_registry import CountingRegistry
from peers.pipe import Pipe, PipeLocal
from peers.zenml import ZenML

# Environments, and the requirements that a round adds, one in each.
BASE = ["numpy==1.26.4", "pandas==2.2.2", "scipy==1.13.1", "scikit-learn==1.5.2"]
LIBRARIES = ["nvidia-cublas-cu12==12.4.5.8", "nvidia-cudnn-cu12==9.1.0.70", "nvidia-cufft-cu12==11.2.1.3", "nvidia-cusparse-cu12==12.3.1.170"]
LIGHT = ["tabulate==0.9.0", "colorama==0.4.6", "tqdm==4.66.5", "click==8.1.7", "packaging==24.1"]
OTHERS = ["idna==3.7", "certifi==2024.7.4", "toolz==0.12.1", "attrs==24.2.0", "pluggy==1.5.0"]
SLOW_ROUNDS = 2  # Rounds of a peer that needs half a minute for each.


class Images:
    def __init__(self, bench: Bench, report: Callable[..., None], quick: bool, pipe: Pipe, zenml: ZenML | None, bare: BareUv):
        self.bench, self.report, self.quick = bench, report, quick
        self.pipe, self.local, self.zenml, self.bare = pipe, PipeLocal(pipe, bench.folder()), zenml, bare
        self.mark = str(time.time_ns())
        self.rows: list[tuple[str, str, str, bool]] = []  # the work, the measured value, the target, and whether it is met

    def measure(self) -> None:
        try:
            self.scikit_learn()
            self.large_wheels()
        finally:
            for peer in (self.pipe, self.bare, *([self.zenml] if self.zenml else [])):
                peer.clean_up()
        lines = [f"| {work} | {measured} | {target} | {'met' if met else '**missed**'} |" for work, measured, target, met in self.rows]
        self.report("Images: targets", {}, [], notes=["| work | measured | target | |", "|---|---|---|---|", *lines])

    def target(self, work: str, value: float, limit: float, unit: str = "s", note: str = "") -> None:
        self.rows.append((work, f"{value:.2f} {unit}{note}", f"at most {limit:g} {unit}", value <= limit))

    def rounds(self, lists: list[list[str]]) -> list[list[str]]:
        return lists[:1] if self.quick else lists

    def alternate(self, title: str, peers: list[Peer], folders: dict[Peer, Path], lists: list[list[str]], marks: list[str] | None = None) -> dict[str, Samples]:
        """One round for each list of requirements; the slow peer takes part in the first ones."""
        lists = self.rounds(lists)
        marks = marks or [self.mark] * len(lists)
        samples: dict[str, Samples] = {}
        counts = sorted({SLOW_ROUNDS if peer is self.zenml else len(lists) for peer in peers})
        begin = 0
        for end in [min(count, len(lists)) for count in counts]:
            turns = [peer for peer in peers if end <= SLOW_ROUNDS or peer is not self.zenml]
            work = {peer: iter(zip(lists[begin:end], marks[begin:end])) for peer in turns}
            contestants = {peer.name: lambda peer=peer: peer.image_project(folders[peer], *next(work[peer])) for peer in turns}
            for name, taken in self.bench.alternate(contestants, end - begin).items():
                known = samples.setdefault(name, Samples())
                known.wall_s += taken.wall_s
                known.cpu_s += taken.cpu_s
                known.max_rss_kib += taken.max_rss_kib
                known.absent = known.absent or taken.absent
            begin = max(begin, end)
        if title:
            self.report(title, samples, peers)
        return samples

    def scikit_learn(self) -> None:
        what = "Image with numpy, pandas, scipy and scikit-learn, and one trivial step in it"
        peers = [self.pipe, self.local, *([self.zenml] if self.zenml else [])]
        folders = {peer: self.bench.folder() for peer in [*peers, self.bare]}
        cold = self.alternate(f"{what}: first, without a package cache", [self.pipe, self.bare], folders, [BASE] * 5, [f"{self.mark}-{n}-cold" for n in range(5)])
        self.alternate("", peers, folders, [BASE])  # Fills the caches of those who have one.
        more = self.alternate(f"{what}: one requirement more", peers, folders, [[*BASE, each] for each in LIGHT])
        same = self.alternate(f"{what}: unchanged", peers, folders, [[*BASE, self.rounds([[each] for each in LIGHT])[-1][0]]] * 5)
        self.target("scikit-learn environment, one light requirement more, above unchanged", above(more, same, self.pipe), 2)
        if self.zenml and not more[self.zenml.name].absent:
            self.rows.append(("the same, ZenML", f"{above(more, same, self.zenml):.2f} s above its unchanged run, {more[self.zenml.name].median():.1f} s in all", "", True))
        self.target("the same, `local`", above(more, same, self.local), 0.5)
        bare = cold[self.bare.name]
        self.target("first build, cold, beside `uv pip install` in a container and `docker commit`",
                    statistics.median(one / other for one, other in zip(cold[self.pipe.name].wall_s, bare.wall_s)), 1.2, "times",
                    f" ({cold[self.pipe.name].median():.1f} s and {bare.median():.1f} s)")
        self.unchanged(folders[self.pipe])
        self.push(folders[self.pipe])

    def unchanged(self, folder: Path) -> None:
        """Counts the builds and resolutions of unchanged requirements, each of which is an event."""
        command = self.pipe.image_project(folder, [*BASE, self.rounds([[each] for each in LIGHT])[-1][0]], self.mark)
        out = subprocess.run([*command.argv, "--output", "json"], cwd=folder, check=True, capture_output=True, text=True).stdout
        begun = [event["image"] for event in map(json.loads, out.splitlines()) if event["event"] == "build_started"]
        self.target("unchanged: builds and resolutions", len(begun), 0, "calls")

    def push(self, folder: Path) -> None:
        """Measures the bytes that a registry gets for one light requirement more, and the size of the new image's own layers, compressed there."""
        with CountingRegistry() as registry:
            taken = []
            for requirements in (BASE, [*BASE, *LIGHT[:1]]):
                command = self.pipe.image_project(folder, requirements, self.mark)
                self.bench.run(command)
                taken.append(registry.push(self.pipe.image_of(command)))
            self.rows.append(("push to a registry after one light requirement more", f"{taken[1] / 1e6:.2f} MB, after {taken[0] / 1e6:.0f} MB for the first image",
                              "only the light layer", taken[1] < 3e6))

    def large_wheels(self) -> None:
        what = "Image with 2 GB of NVIDIA's libraries, and one trivial step in it"
        folders = {self.pipe: self.bench.folder()}
        self.alternate(f"{what}: first", [self.pipe], folders, [LIBRARIES])
        before = layer_bytes()
        more = self.alternate(f"{what}: one requirement more", [self.pipe], folders, [[*LIBRARIES, each] for each in LIGHT])
        grown = (layer_bytes() - before) / 1e6 / len(more[self.pipe.name].wall_s)
        same = self.alternate(f"{what}: unchanged", [self.pipe], folders, [[*LIBRARIES, self.rounds([[each] for each in LIGHT])[-1][0]]] * 5)
        self.target("2 GB in large wheels, one light requirement more, above unchanged", above(more, same, self.pipe), 3)
        self.target("its new disk", grown, 10, "MB")
        before = layer_bytes()
        folders = {self.pipe: self.bench.folder()}
        second = self.alternate(f"{what}: a second environment that shares them", [self.pipe], folders, [[*LIBRARIES, each] for each in OTHERS])
        self.target("second environment that shares the heavy packages, above unchanged", above(second, same, self.pipe), 3, note=f", {(layer_bytes() - before) / 1e6 / len(second[self.pipe.name].wall_s):.1f} MB of new disk")


def above(more: dict[str, Samples], same: dict[str, Samples], peer: Peer) -> float:
    return more[peer.name].median() - same[peer.name].median()


def layer_bytes() -> int:
    """Returns the bytes of all layers that the engine has, each once."""
    out = subprocess.run(["curl", "-fsS", "--unix-socket", "/var/run/docker.sock", "http://engine/system/df"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["LayersSize"]

