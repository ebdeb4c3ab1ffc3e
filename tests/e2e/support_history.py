"""A state folder with a long history: copies of an existing run, written directly into the store's database."""

import pathlib
import sqlite3


class History:
    """Copies the records of a run, and of its first step and attempt, under other names. close() must be called before `pipe` opens the store."""

    def __init__(self, state: pathlib.Path, run: str):
        self.file = state / "pipe.db"
        self.database = sqlite3.connect(self.file)
        self.record = self.rows("runs", run)[0]
        self.step, self.attempt = self.rows("steps", run)[0], self.rows("attempts", run)[0]

    def rows(self, table: str, run: str) -> list[dict]:
        """Returns the run's rows of a table by column. The ids of rows are left out, except in `runs`, where the id is the run's name."""
        names = [column[1] for column in self.database.execute(f"PRAGMA table_info({table})") if column[1] != "id" or table == "runs"]
        found = self.database.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {'id' if table == 'runs' else 'run'} = ?", (run,))
        return [dict(zip(names, values)) for values in found]

    def add(self, table: str, row: dict, **changes):
        """Inserts a copy of a row, with these columns changed."""
        row = row | changes
        self.database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))

    def add_runs(self, count: int):
        """Adds copies of the run, each a minute older than the one before."""
        for i in range(count):
            name = f"20250101-{i:06}-{i:06x}"
            self.add("runs", self.record, id=name, started=self.record["started"] - i * 60_000)
            self.add("steps", self.step, run=name)
            self.add("attempts", self.attempt, run=name)
        self.database.commit()

    def add_wide_run(self, name: str, steps: int):
        """Adds a run with this name that has `steps` instances of the original's first step."""
        self.add("runs", self.record, id=name, steps=steps)
        for i in range(steps):
            self.add("steps", self.step, run=name, name=f"work.i-{i}")
            self.add("attempts", self.attempt, run=name, step=f"work.i-{i}", started=self.attempt["started"] + i * 3)
        self.database.commit()

    def close(self):
        """Closes the database, and sets the checksum at the end of each page to zero, which marks a page that another program has written
        (store/checked_vfs.hpp): the checksums of changed pages are wrong."""
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.database.close()
        with self.file.open("r+b") as file:
            for end in range(4096, self.file.stat().st_size + 1, 4096):  # SQLite's page size here; the checksum has 8 bytes
                file.seek(end - 8)
                file.write(bytes(8))
