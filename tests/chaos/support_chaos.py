"""Shared parts of the chaos tests: their scale, seeds that can be repeated, changes of a disk that fail, and the figures.

CHAOS_SCALE is the share of rounds that run: 1 takes about an hour; the default is what CI has time for. CHAOS_SEED repeats the rounds of a seed, and
CHAOS_ONLY=N[,M] only those with these numbers (a failed round is shown with its number). CHAOS_MINUTES=N ends the rounds of a test after N minutes. Figures are
printed, and kept in the folder `chaos` of the build.
"""

import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from support import NOWHERE, PIPE, PipeTest, Result, docker, wait_until  # noqa: E402, F401

SCALE = float(os.environ.get("CHAOS_SCALE") or "0.03")
# At a small scale, as in CI, the seed is always the same, so that only a change of the sources can make a test fail.
SEED = int(os.environ.get("CHAOS_SEED") or (random.SystemRandom().randrange(1 << 32) if SCALE >= 0.1 else 1))
MINUTES = float(os.environ.get("CHAOS_MINUTES") or "inf")
ONLY = [int(number) for number in os.environ.get("CHAOS_ONLY", "").split(",") if number]
LIBRARIES = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")) / "lib"
FIGURES = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")) / "chaos"
REPEAT = f"CHAOS_SEED={SEED} CHAOS_SCALE={SCALE:g}"


def scaled(in_full: int, at_least: int = 1) -> int:
    """Returns the share CHAOS_SCALE of a number."""
    return max(at_least, round(in_full * SCALE))


def rounds(in_full: int, at_least: int = 1):
    """Yields the numbers of the rounds, each with a random generator of its own, so that a round can be repeated alone."""
    end = time.monotonic() + 60 * MINUTES
    for number in ONLY or range(scaled(in_full, at_least)):
        if time.monotonic() > end:
            return
        yield number, random.Random(f"{SEED}/{number}")


MAX_CHANGES = 800  # More changes than a run of these tests' pipelines makes in its state folder.


def places(*deeds) -> list[tuple]:
    """Returns pairs (AT, DEED): the number of a change of the disk, and what happens there, one of `deeds`.

    The order depends only on the seed: each change once, then each change with another deed, and so on.

    A run makes a few changes more or less than the run before, but the number of a round always means the same pair: see rounds_at().
    """
    chance = random.Random(SEED)
    first = [chance.randrange(len(deeds)) for _ in range(MAX_CHANGES + 1)]
    found = []
    for turn in range(len(deeds)):
        order = list(range(1, MAX_CHANGES + 1))
        chance.shuffle(order)
        found += [(at, deeds[(first[at] + turn) % len(deeds)]) for at in order]
    return found


def rounds_at(changes: int, where: list[tuple], in_full: int, elsewhere: float = 0):
    """Yields what rounds() does, and for each round with an even number its pair of places().

    A share of the rounds, `elsewhere`, has odd numbers and None instead. Pairs behind the last change are passed over.
    """
    assert changes <= MAX_CHANGES, f"{changes} changes: raise MAX_CHANGES"
    end = time.monotonic() + 60 * MINUTES
    at_places, others = (2 * i for i in itertools.count() if where[i % len(where)][0] <= changes), itertools.count(1, 2)
    for i in range(len(ONLY) or scaled(in_full)):
        if time.monotonic() > end:
            return
        is_elsewhere = int((i + 1) * elsewhere) > int(i * elsewhere)
        number = ONLY[i] if ONLY else next(others if is_elsewhere else at_places)
        yield number, random.Random(f"{SEED}/{number}"), None if number % 2 else where[number // 2 % len(where)]


def figure(test: str, text: str):
    """Prints a line of figures, and adds it to the file of the test."""
    failed = ChaosTest.current and not ChaosTest.current._outcome.success  # The figures count only the rounds that have passed.
    line = f"{test}: {'SOME ROUNDS HAVE FAILED; ' if failed else ''}{text}  ({REPEAT})"
    print(line, flush=True)
    FIGURES.mkdir(exist_ok=True)
    with open(FIGURES / f"{test}.txt", "a") as file:
        file.write(line + "\n")


def in_words(seconds: list[float]) -> str:
    """Returns the median and the maximum of times as text."""
    ordered = sorted(seconds) or [0]
    return f"{1000 * ordered[len(ordered) // 2]:.0f} ms in the middle, {1000 * ordered[-1]:.0f} ms at most"


class ChaosTest(PipeTest):
    """A test with rounds; each has a state of its own if it asks for one."""

    current = None

    def setUp(self):
        super().setUp()
        ChaosTest.current = self
        print(f"{self.id()}: {REPEAT}", flush=True)  # Printed here, because a failing test may end before it prints its figures.

    @contextlib.contextmanager
    def subTest(self, *arguments, **parameters):
        """Prints a round's failure at once, because the end of all rounds may be an hour away."""
        with super().subTest(*arguments, **parameters):
            try:
                yield
            except unittest.SkipTest:
                raise
            except Exception:
                print(f"{self.id()}: failed: {parameters}", flush=True)
                traceback.print_exc()
                raise

    def fresh_state(self) -> pathlib.Path:
        """Removes the state folder, and returns the path of the next one."""
        self.remove_state()
        self.state = self.folder / "state"
        return self.state

    def remove_state(self):
        if self.state.exists():
            for folder, names, _ in os.walk(self.state):
                for name in names:
                    with contextlib.suppress(OSError):
                        os.chmod(os.path.join(folder, name), 0o700)
            shutil.rmtree(self.state)

    def disk(self, at: int = 0, deed: str = "", count: int = 1) -> dict:
        """Returns variables with which faulty_disk.so does `deed` at the command's change with the number `at` below the state folder.

        faulty_disk.so does the deed at `count` changes in all; 0 means at all later ones.
        """
        log = self.folder / "changes"
        log.unlink(missing_ok=True)
        return {"LD_PRELOAD": str(LIBRARIES / "faulty_disk.so"), "CHAOS_PROGRAM": os.path.realpath(PIPE), "CHAOS_FOLDER": str(self.state),
                "CHAOS_LOG": str(log), "CHAOS_AT": str(at), "CHAOS_DO": deed, "CHAOS_FOR": str(count)}

    def changes(self) -> list[str]:
        """Returns the changes of the last command with disk()."""
        log = self.folder / "changes"
        return log.read_text().splitlines() if log.exists() else []

    def processes(self) -> list[str]:
        """Returns this test's processes, which work in its folder or whose command names it."""
        found, own = [], str(self.folder)
        for process in pathlib.Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if os.readlink(process / "cwd").startswith(own) or own in command:
                    found.append(f"{process.name}: {command}")
        return found

    def assert_no_work_left(self):
        """Fails if a run's work folder is left. Unfinished artifacts of a killed driver may stay in artifacts/tmp until `pipe clean`, which passes over those
        younger than a minute."""
        work = self.state / "work"
        self.assertEqual([path.name for path in work.iterdir()] if work.is_dir() else [], [])

    def assert_database_whole(self):
        """Fails if SQLite finds the database damaged. SQLite reads a copy, so that the original stays unchanged."""
        copy = self.folder / "copy-of-state"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in ("pipe.db", "pipe.db-wal"):
            if (self.state / name).exists():
                shutil.copy(self.state / name, copy / name)
        with contextlib.closing(sqlite3.connect(copy / "pipe.db")) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])


class Watched:
    """A command whose events are read as they arrive. Each event has a member `after`: the seconds since the command's start."""

    def __init__(self, test: PipeTest, *words, **env):
        self.began = time.monotonic()
        self.events = []
        self.errors = open(test.folder / f"stderr-{id(self)}", "w+")
        self.process = subprocess.Popen([PIPE, *map(str, words)], cwd=test.folder, env=test.environment(env), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True)

    def kill_after(self, seconds: float):
        threading.Timer(seconds, self.process.kill).start()

    def end(self) -> Result:
        """Waits until the command ends, and returns its Result."""
        text = ""
        with self.process.stdout:
            for line in self.process.stdout:
                text += line
                with contextlib.suppress(ValueError):  # The last line of a killed command may be incomplete.
                    self.events.append({**json.loads(line), "after": time.monotonic() - self.began})
        self.process.wait()
        self.errors.seek(0)
        errors = self.errors.read()
        self.errors.close()
        os.unlink(self.errors.name)
        return Result(self.process.returncode, text, errors)

    def steps(self, kind: str, *statuses: str) -> set[str]:
        """Returns the steps that have an event of this kind, with one of these statuses if any are given."""
        return {event["step"] for event in self.events if event["event"] == kind and (not statuses or event["status"] in statuses)}

    def first(self, kind: str) -> float | None:
        """Returns the seconds until the first event of this kind."""
        return next((event["after"] for event in self.events if event["event"] == kind), None)
