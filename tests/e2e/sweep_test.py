"""A sweep of 60 runs: found, sorted and compared by commands, and on the page."""

import json
import unittest

from serve_test import ServeTest
from support_browser import BROWSER, Browser

RUNS = 60


def accuracy(c: int) -> float:
    """Returns the accuracy of a run with the parameter c, which is best at 37. train.py computes the same."""
    return round(1 - abs(c - 37) / 100, 2)


class Sweep(ServeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.write("train.py", "import json, sys\nc = int(sys.argv[1])\nprint('@pipe', json.dumps({'metric': 'accuracy', 'value': round(1 - abs(c - 37) / 100, 2)}))\n")
        self.runs = {}
        for c in range(1, RUNS + 1):
            self.pipeline({"train": {"command": ["python3", "train.py", "${params.c}"], "code": ["train.py"]}}, parameters={"c": 1}, tags=["sweep"])
            self.runs[c] = self.run_pipe("-p", f"c={c}").events("run_started")[0]["run"]

    def found(self, *words) -> list[dict]:
        """Returns the sweep's runs as `pipe runs` lists them with these words."""
        done = self.pipe("runs", "--tag", "sweep", "--limit", "0", *words, "--output", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)["runs"]

    def test_commands_find_sort_and_compare_the_runs(self):
        columns = ("--columns", "params.c,metrics.accuracy,usage.cpu")
        best = sorted(self.runs, key=accuracy, reverse=True)
        listed = self.found("--sort", "metrics.accuracy", *columns)
        self.assertEqual(len(listed), RUNS)
        self.assertEqual([run["values"]["metrics.accuracy"] for run in listed], [accuracy(c) for c in best])
        self.assertEqual((listed[0]["id"], listed[0]["values"]["params.c"]), (self.runs[37], 37))
        self.assertTrue(all(run["values"]["usage.cpu"] > 0 for run in listed))
        chosen = self.found("--where", "params.c > 30 and params.c <= 50 and metrics.accuracy >= 0.95", *columns)
        self.assertEqual({run["values"]["params.c"] for run in chosen}, set(range(32, 43)))
        rows = json.loads(self.pipe("compare", *[self.runs[c] for c in (37, 1, 60)], "--output", "json").out)["rows"]
        self.assertEqual([(row["group"], row["name"], row["values"]) for row in rows if row["differs"]][:2],
                         [("metric", "train.accuracy", [1.0, 0.64, 0.77]), ("parameter", "c", [37, 1, 60])])
        table = self.pipe("runs", "--limit", "3", "--sort", "metrics.accuracy", "--columns", "params.c,metrics.accuracy").out
        self.assertRegex(table.splitlines()[1], rf"{self.runs[37]}.* 37 +1\b")

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_the_page_finds_sorts_and_compares_the_runs(self):
        browser = Browser()
        self.addCleanup(browser.close)
        query = "/?column=params.c&column=metrics.accuracy&sort=metrics.accuracy&chart=1&"
        browser.open(self.serve().replace("/?", query), f"document.querySelectorAll('table.runs tbody tr').length === {RUNS}")
        self.assertEqual(browser.js("document.querySelector('table.runs tbody a').textContent"), self.runs[37])
        browser.wait(f"document.querySelectorAll('circle.point').length === {RUNS}")
        browser.js("document.querySelector('#where').focus()")
        browser.call("Input.insertText", text="params.c > 30 and params.c <= 50 and metrics.accuracy >= 0.95")
        browser.press("Enter")
        browser.wait("document.querySelectorAll('table.runs tbody tr').length === 11")
        browser.wait("document.querySelectorAll('circle.point').length === 11")
        browser.js("[...document.querySelectorAll('tbody input')].slice(0, 3).forEach((one) => one.click()); [...document.querySelectorAll('button')].find((one) => one.textContent === 'Compare 3 runs').click()")
        browser.wait("document.querySelector('table.compared')")
        row = browser.js("[...document.querySelector('table.compared').rows[1].cells].map((one) => one.textContent)")
        self.assertEqual(row[:3], ["metric", "train.accuracy", "\u2605 1"])
        self.assertEqual(browser.complaints, [])


if __name__ == "__main__":
    unittest.main()
