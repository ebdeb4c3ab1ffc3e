"""A bit of an artifact or of the database flips, while the file keeps its times: this is noticed, and no step computes with the damaged data."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import unittest

from support_chaos import NOWHERE, ChaosTest, figure, rounds

WORK = """
import sys
out, n, *files = sys.argv[1:]
text = f'{n}\\n'.encode()
for name in files:
    text += open(name, 'rb').read()
open(out, 'wb').write(text)
"""


def dump(folder) -> list[str] | None:
    """Returns the database's content; nothing if SQLite itself finds it damaged."""
    with contextlib.closing(sqlite3.connect(folder / "pipe.db")) as database:
        database.text_factory = bytes
        try:
            return [sorted(map(repr, database.execute(f"SELECT * FROM {table}"))) for (table,) in
                    database.execute("SELECT CAST(name AS TEXT) FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
                    for table in [table.decode()]]
        except sqlite3.DatabaseError:
            return None


class FlippedBits(ChaosTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def make_template(self):
        """Makes a state folder with 14 runs, which each round copies, and records the right results."""
        self.write("work.py", WORK)
        self.write("data.txt", "".join(f"line {i} of some data\n" for i in range(300)))
        self.write("big.py", "import sys\nopen(sys.argv[1], 'wb').write(bytes(i * i % 251 for i in range(1200)) * 2000)\n")
        self.pipeline({
            "small": {"command": "cat data.txt > ${outputs.x}", "code": ["data.txt"], "outputs": ["x"]},
            "folder": {"command": "mkdir -p ${outputs.d}/deep; cp data.txt ${outputs.d}/one; echo two > ${outputs.d}/deep/two", "code": ["data.txt"], "outputs": ["d"]},
            "big": {"command": ["python3", "big.py", "${outputs.x}"], "code": ["big.py"], "outputs": ["x"]},
            "use": {"command": "python3 work.py ${outputs.x} ${params.n} ${inputs.s} ${inputs.d}/one ${inputs.d}/deep/two", "code": ["work.py"],
                    "inputs": {"s": "small.x", "d": "folder.d"}, "parameters": {"n": 0}, "outputs": ["x"]},
            "sum": {"command": "python3 work.py ${outputs.x} ${params.n} ${inputs.b}", "code": ["work.py"], "inputs": {"b": "big.x"}, "parameters": {"n": 0},
                    "outputs": ["x"]},
        })
        for n in range(14):  # Enough runs that SQLite has moved its write-ahead log into the database at least once.
            self.run_n(n)
        self.assertGreater((self.state / "pipe.db").stat().st_size, 40_000)
        self.right = {name: pathlib.Path(self.path_of(name)).read_bytes().partition(b"\n")[2] for name in ("use.x", "sum.x")}
        self.names = {self.path_of(name): name for name in ("small.x", "folder.d", "big.x", "use.x", "sum.x")}
        self.state.rename(self.folder / "template")

    def run_n(self, n: int, code: int | None = 0):
        """Runs the pipeline with the parameter n."""
        return self.run_pipe("-p", f"use.n={n}", "-p", f"sum.n={n}", code=code)

    def path_of(self, name: str) -> str:
        listed = json.loads(self.pipe("artifacts", "latest", "--output", "json").out)["artifacts"]
        return next(each["path"] for each in listed if each["output"] == name)

    def flip(self, path, random) -> str:
        """Flips a random bit of a file, and returns a text that says which."""
        before = os.stat(path)
        os.chmod(path, 0o644)
        at = random.randrange(before.st_size)
        bit = random.randrange(8)
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << bit]))
        os.chmod(path, before.st_mode)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return f"bit {bit} of byte {at} of {path}"

    def assert_right(self, result, n: int, where: str):
        """Fails unless a run with the parameter n has succeeded with the right results."""
        self.assertEqual(result.code, 0, f"{where}\n{result}")
        for name, right in self.right.items():
            path = next(each["path"] for each in result.events("summary")[0]["results"] if each["output"] == name)
            self.assertEqual((self.folder / path).read_bytes(), f"{n}\n".encode() + right, f"{where}\n{result}")

    def restore(self):
        self.remove_state()
        shutil.copytree(self.folder / "template", self.state, symlinks=True)

    def check_artifact(self, number: int, random) -> str:
        """Flips a bit of an artifact, checks the commands that follow, and returns how the damage was noticed."""
        stored = sorted(path for path in (self.state / "artifacts").rglob("*") if path.is_file())
        path = random.choice(stored)
        where = self.flip(path, random)
        if path.stat().st_size > 1 << 20 or random.random() < 0.5:
            verified = self.pipe("verify", "--output", "json")
            self.assertEqual(verified.code, 3, f"{where}\n{verified}")
            self.assert_right(self.run_n(1000 + number), 1000 + number, where)
            return "found by `pipe verify`"
        result = self.run_n(1000 + number, code=None)
        if result.code:
            self.assertIn("damaged", result.text, where)
            outcome = "noticed before a step used it"
        else:  # Code and small inputs are looked at by each run that uses them, and made again if they are damaged.
            is_whole = path.read_bytes() == (self.folder / "template" / path.relative_to(self.state)).read_bytes()
            outcome = "made again by the run that used it" if is_whole else "unused by the run, found by `pipe verify`"
            self.assert_right(result, 1000 + number, where)
        self.assert_right(self.run_n(2000 + number), 2000 + number, where)
        verified = self.pipe("verify")
        self.assertEqual(verified.code, 3 if outcome.startswith("unused") else 0, f"{where}\n{result}\n{verified}")
        return outcome

    def check_database(self, number: int, random) -> str:
        """Flips a bit of the database or of its write-ahead log, checks the commands that follow, and returns how the damage was noticed."""
        path = self.state / random.choice(["pipe.db", "pipe.db", "pipe.db", "pipe.db-wal"])
        where = self.flip(path, random)
        verified = self.pipe("verify")
        self.assertIn(verified.code, (0, 3), where)
        if verified.code:
            self.assertRegex(verified.text, "damaged|checksum|database of another program|newer version", where)
            result = self.run_n(1000 + number, code=None)
            if result.code:
                self.assertRegex(result.text, "damaged|checksum|database of another program|newer version", where)
                return "noticed in the database"
            self.assert_right(result, 1000 + number, where)
            return "found in the database by `pipe verify`"
        copy = self.folder / "copy-of-state"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in ("pipe.db", "pipe.db-wal"):
            shutil.copy(self.state / name, copy / name)
        if path.name == "pipe.db":
            self.assertEqual(dump(copy), self.said, where)
        result = self.run_n(1000 + number)
        self.assert_right(result, 1000 + number, where)
        return "in the database where nothing is read" if path.name == "pipe.db" else "in the database's log, which ends before it"

    def test_a_flipped_bit_is_noticed_or_has_no_effect(self):
        self.make_template()
        copy = self.folder / "said"
        copy.mkdir()
        for name in ("pipe.db", "pipe.db-wal"):
            shutil.copy(self.folder / "template" / name, copy / name)
        self.said = dump(copy)
        outcomes = collections.Counter()
        for number, random in rounds(500):
            with self.subTest(round=number):
                self.restore()
                check = self.check_artifact if number % 2 else self.check_database
                outcomes[check(number, random)] += 1
        figure("flipped_bits", f"{sum(outcomes.values())} flipped bits: " + ", ".join(f"{count} {what}" for what, count in outcomes.most_common()))


if __name__ == "__main__":
    unittest.main()
