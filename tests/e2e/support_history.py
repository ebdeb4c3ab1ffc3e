"""A state folder with a long history: copies of a run that there is, written into the store as the command has written the original."""

import pathlib
import sqlite3


class History:
    """The records of a run, to be written again under other names."""

    def __init__(self, state: pathlib.Path, run: str):
        self.file = state / "pipe.db"
        self.database = sqlite3.connect(self.file)
        self.record = self.rows("runs", run)[0]
        self.step, self.attempt = self.rows("steps", run)[0], self.rows("attempts", run)[0]

    def rows(self, table: str, run: str) -> list[dict]:
        names = [column[1] for column in self.database.execute(f"PRAGMA table_info({table})") if column[1] != "id" or table == "runs"]
        found = self.database.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {'id' if table == 'runs' else 'run'} = ?", (run,))
        return [dict(zip(names, values)) for values in found]

    def add(self, table: str, row: dict, **changes):
        row = row | changes
        self.database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))

    def add_runs(self, count: int):
        """Runs like this one, a minute before each other."""
        for i in range(count):
            name = f"20250101-{i:06}-{i:06x}"
            self.add("runs", self.record, id=name, started=self.record["started"] - i * 60_000)
            self.add("steps", self.step, run=name)
            self.add("attempts", self.attempt, run=name)
        self.database.commit()

    def add_wide_run(self, name: str, steps: int):
        """A run with many instances of this one's first step."""
        self.add("runs", self.record, id=name, steps=steps)
        for i in range(steps):
            self.add("steps", self.step, run=name, name=f"work.i-{i}")
            self.add("attempts", self.attempt, run=name, step=f"work.i-{i}", started=self.attempt["started"] + i * 3)
        self.database.commit()

    def close(self):
        """Removes the pages' checksums, which are no longer right: zero marks a page that another program has written (store/checked_vfs.hpp)."""
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.database.close()
        with self.file.open("r+b") as file:
            for end in range(4096, self.file.stat().st_size + 1, 4096):
                file.seek(end - 8)
                file.write(bytes(8))
