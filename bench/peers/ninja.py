"""ninja, driving `cat`, `true` or `docker run`."""

from pathlib import Path

from model import IMAGE, Command, Peer, Work
from peers.venv import first_line

COMMANDS = {"container": f"docker run --rm --network none {IMAGE} true", "process": "true", "extend": "cat $in > $out; echo $out >> $out"}


class Ninja(Peer):
    name = "ninja"

    def version(self) -> str:
        return first_line(self.version_command())

    def version_command(self) -> list[str]:
        return ["ninja", "--version"]

    def project(self, work: Work, folder: Path) -> Command:
        lines = ["rule step", f"  command = {COMMANDS[work.kind]}"]
        (folder / "seed").write_text("seed\n")
        for step in work.steps:
            needs = step.needs or (("seed",) if work.kind == "extend" else ())
            lines.append(f"build {step.name}: step {' '.join(needs)}")
        (folder / "build.ninja").write_text("\n".join(lines) + "\n")
        return Command(["ninja", "--quiet", "-j", str(work.jobs)], folder)

    def plan(self, work: Work, folder: Path) -> Command:
        if work.shape == "matrix":
            raise NotImplementedError
        self.project(work, folder)
        return Command(["ninja", "-n"], folder)
