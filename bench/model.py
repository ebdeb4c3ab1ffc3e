"""The work that is measured, as values, and the interface of a peer, a program that `pipe` is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

IMAGE = "debian:bookworm-slim"


@dataclass(frozen=True)
class Step:
    name: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """`kind` is what each step does: `container` runs `true` in IMAGE without a network, `process` runs `true` on this machine,
    `extend` writes a file of its own: that of the step that it needs (or `seed`), and its own name after that, so that no two files are alike."""

    kind: str
    shape: str
    steps: tuple[Step, ...]
    jobs: int = 2


@dataclass
class Command:
    argv: list[str]
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)


class Absent(Exception):
    """This peer cannot be had here; the message says why, for the report."""


class Peer:
    name: str

    def version(self) -> str:
        """Installs what is missing. Raises Absent."""
        raise NotImplementedError

    def version_command(self) -> list[str]:
        """Returns the shortest command that the program has."""
        raise NotImplementedError

    def project(self, work: Work, folder: Path) -> Command:
        """Writes a project for `work` into an empty folder and returns the command that runs it all."""
        raise NotImplementedError

    def plan(self, work: Work, folder: Path) -> Command:
        """Writes a project for `work` into an empty folder and returns the command that says what would run."""
        raise NotImplementedError

    def make_done(self, work: Work, folder: Path, run: Callable[[Command], object]) -> Command:
        """Writes a project in which all steps are done, by running it once."""
        command = self.project(work, folder)
        run(command)
        return command

    def clean_up(self) -> None:
        """Removes what runs have left on the machine outside of their folders."""


def chain(kind: str, count: int) -> Work:
    return columns(kind, count, 1)


def wide(kind: str, count: int) -> Work:
    return columns(kind, count, count)


def matrix(kind: str, count: int) -> Work:
    """Returns the work of wide(), as a single step with a matrix of 100 columns, for peers that support a matrix."""
    return Work(kind, "matrix", wide(kind, count).steps)


def columns(kind: str, count: int, width: int) -> Work:
    """Returns work of `width` chains side by side."""
    shape = "chain" if width == 1 else "wide" if width == count else f"{width} chains"
    return Work(kind, shape, tuple(Step(f"s{i}", (f"s{i - width}",) if i >= width else ()) for i in range(count)))
