"""GNU make, driving `true`."""

from pathlib import Path

from model import Command, Peer, Work
from peers.venv import first_line


class Make(Peer):
    name = "make"

    def version(self) -> str:
        return first_line(self.version_command()).removeprefix("GNU Make ")

    def version_command(self) -> list[str]:
        return ["make", "--version"]

    def project(self, work: Work, folder: Path) -> Command:
        assert work.kind == "process"
        names = " ".join(step.name for step in work.steps)
        rules = [f"{step.name}: {' '.join(step.needs)}\n\ttrue" for step in work.steps]
        (folder / "Makefile").write_text(f"all: {names}\n.PHONY: all {names}\n" + "\n".join(rules) + "\n")
        return Command(["make", "--silent", "-r", "-j", str(work.jobs)], folder)
