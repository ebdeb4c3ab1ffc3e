"""A state folder that an earlier `pipe` has written (its database: tests/golden/stores) opens, and shows its runs in every way that today's have."""

import gzip
import json
import pathlib
import unittest

from serve_test import ServeTest

STORES = pathlib.Path(__file__).resolve().parents[1] / "golden/stores"
FAILED, REPEATED = "20261123-182410-84c23f", "20261123-182410-d2dea4"


class EarlierStore(ServeTest):
    def setUp(self):
        super().setUp()
        self.state.mkdir(parents=True)
        (self.state / "pipe.db").write_bytes(gzip.decompress((STORES / "format-2.db.gz").read_bytes()))
        self.write(self.state / "logs" / FAILED / "broken.1.log", "no such column\n")

    def json_of(self, *words) -> dict:
        done = self.pipe(*words, "--output", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def test_commands_show_its_runs(self):
        self.assertEqual([run["id"] for run in self.json_of("runs")["runs"]], [REPEATED, FAILED])
        shown = self.json_of("show", FAILED)
        self.assertEqual({step["step"]: step["status"] for step in shown["steps"]},
                         {"load": "succeeded", "train.size-1": "succeeded", "train.size-2": "succeeded", "best": "succeeded", "broken": "failed"})
        self.assertNotIn("usage", shown["steps"][0]["attempts"][0], "nothing was measured then")
        self.assertIn("ended with exit code 3", self.pipe("show", FAILED).out)
        self.assertEqual(self.pipe("logs", FAILED, "broken").out, "no such column\n")
        self.assertEqual(len(self.json_of("runs", "--where", "params.c < 1 and status == 'failed'")["runs"]), 2)
        made = self.json_of("why", "8b654aaf31d8")
        self.assertEqual((made["step"], made["inputs"]["data"]["step"]), ("train.size-2", "load"))
        used = self.json_of("used", "4355a46b19d3")["used"]
        self.assertEqual([use["step"] for use in used], ["train.size-1", "train.size-2"])
        self.json_of("metrics", FAILED)
        self.json_of("compare", FAILED, REPEATED)
        self.assertEqual(self.pipe("note", FAILED, "before the update").code, 0)

    def test_report_and_page_show_it(self):
        self.assertEqual(self.pipe("report", FAILED, "-o", "report.html").code, 0)
        self.assertIn("no such column", (self.folder / "report.html").read_text())
        self.serve()
        self.assertEqual([run["id"] for run in self.json("/api/runs")["runs"]], [REPEATED, FAILED])
        self.assertEqual([step["s"] for step in self.json("/api/run?run=" + FAILED)["steps"]], ["succeeded"] * 4 + ["failed"])


if __name__ == "__main__":
    unittest.main()
