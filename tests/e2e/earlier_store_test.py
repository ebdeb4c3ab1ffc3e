"""A state folder that an earlier `pipe` wrote (its database is in tests/golden/stores) can be opened, and all commands and pages show its runs."""

import gzip
import json
import pathlib
import unittest

from serve_test import ServeTest

STORES = pathlib.Path(__file__).resolve().parents[1] / "golden/stores"


class EarlierStore(ServeTest):
    """A store of format 2, from before usage was measured."""

    FORMAT, FAILED, REPEATED = 2, "20261123-182410-84c23f", "20261123-182410-d2dea4"  # The latter are runs.
    DATA, MODEL = "4355a46b19d3", "8b654aaf31d8"  # Digests of the outputs of load and train.size-2.
    ATTEMPTS, HAS_USAGE = 1, False  # Attempts of the step that failed.

    def setUp(self):
        super().setUp()
        self.state.mkdir(parents=True)
        (self.state / "pipe.db").write_bytes(gzip.decompress((STORES / f"format-{self.FORMAT}.db.gz").read_bytes()))
        self.write(self.state / "logs" / self.FAILED / f"broken.{self.ATTEMPTS}.log", "no such column\n")

    def json_of(self, *words) -> dict:
        """Returns the JSON that a command prints."""
        done = self.pipe(*words, "--output", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def test_commands_show_its_runs(self):
        self.assertEqual([run["id"] for run in self.json_of("runs")["runs"]], [self.REPEATED, self.FAILED])
        shown = self.json_of("show", self.FAILED)
        self.assertEqual({step["step"]: step["status"] for step in shown["steps"]},
                         {"load": "succeeded", "train.size-1": "succeeded", "train.size-2": "succeeded", "best": "succeeded", "broken": "failed"})
        attempts = shown["steps"][4]["attempts"]
        self.assertEqual([attempt["exit_code"] for attempt in attempts], [3] * self.ATTEMPTS)
        self.assertEqual(["usage" in attempt for attempt in attempts], [self.HAS_USAGE] * self.ATTEMPTS)
        self.assertIn("ended with exit code 3", self.pipe("show", self.FAILED).out)
        self.assertEqual(self.pipe("logs", self.FAILED, "broken").out, "no such column\n")
        self.assertEqual(len(self.json_of("runs", "--where", "params.c < 1 and status == 'failed'")["runs"]), 2)
        made = self.json_of("why", self.MODEL)
        self.assertEqual((made["step"], made["inputs"]["data"]["step"]), ("train.size-2", "load"))
        used = self.json_of("used", self.DATA)["used"]
        self.assertEqual([use["step"] for use in used], ["train.size-1", "train.size-2"])
        self.json_of("metrics", self.FAILED)
        self.json_of("compare", self.FAILED, self.REPEATED)
        self.assertEqual(self.pipe("note", self.FAILED, "before the update").code, 0)

    def test_report_and_page_show_its_runs(self):
        self.assertEqual(self.pipe("report", self.FAILED, "-o", "report.html").code, 0)
        self.assertIn("no such column", (self.folder / "report.html").read_text())
        self.serve()
        self.assertEqual([run["id"] for run in self.json("/api/runs")["runs"]], [self.REPEATED, self.FAILED])
        self.assertEqual([step["s"] for step in self.json("/api/run?run=" + self.FAILED)["steps"]], ["succeeded"] * 4 + ["failed"])


class StoreWithoutTasks(EarlierStore):
    """A store of format 4, from before an attempt had tasks."""

    FORMAT, FAILED, REPEATED = 4, "20261126-204946-phptt0", "20261126-204947-2yb78v"
    MODEL = "7dddaafc355a"
    ATTEMPTS, HAS_USAGE = 2, True


if __name__ == "__main__":
    unittest.main()
