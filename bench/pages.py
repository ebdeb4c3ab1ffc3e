"""Measures how fast the pages open: the report and the live page of a run of 10,000 steps, a list of 10,000 runs, a log of 1 GiB. In a headless Chromium; the last table has the targets."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import Bench
from model import Absent

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "e2e"))
from support_browser import BROWSER, Browser
from support_history import History

PIPELINE = """name: pages
parameters: {{c: 1}}
steps:
  load: {{command: "echo loaded for {steps} steps; echo 1 > ${{outputs.data}}", outputs: [data]}}
  work:
    command: "echo working on ${{params.i}}; cat ${{inputs.data}} > ${{outputs.piece}}; echo ${{params.i}} >> ${{outputs.piece}}"
    inputs: {{data: load.data}}
    outputs: [piece]
    matrix: {{i: [{values}]}}
"""
ROWS = "document.querySelector('#steps tbody tr')"


class Pages:
    def __init__(self, bench: Bench, report: Callable[..., None], quick: bool, program: str):
        if not BROWSER:
            raise Absent("no Chromium: scripts/setup test installs Debian's")
        self.report, self.program, self.rounds = report, program, 3 if quick else 11
        self.count, self.log_size = (1000, 64 << 20) if quick else (10_000, 1 << 30)
        self.folder = bench.folder()
        self.state = self.folder / "state"
        self.rows: list[str] = []

    def pipe(self, *words: str) -> str:
        done = subprocess.run([self.program, *words], cwd=self.folder, env={**os.environ, "PIPE_HOME": str(self.state)}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise Absent(f"`pipe {words[0]}` ended with exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def run(self, steps: int) -> str:
        (self.folder / "pipeline.yaml").write_text(PIPELINE.format(steps=steps, values=", ".join(map(str, range(steps - 1)))))
        return json.loads(self.pipe("run", "pipeline.yaml", "-o", "local", "--output", "json").splitlines()[0])["run"]

    def long_log(self, run: str) -> None:
        lines = b"".join(b"\x1b[3%dmepoch\x1b[0m %d: loss = 0.25 \xe2\x82\xac\n" % (i % 8, i) for i in range(10_000))
        with (self.state / "logs" / run / "load.1.log").open("ab") as log:  # between its ends it is a hole
            log.write(lines)
            log.truncate(self.log_size - len(lines))
            log.seek(0, os.SEEK_END)
            log.write(lines + b"the end\n")

    def target(self, what: str, value: float, limit: float, unit: str) -> None:
        self.rows.append(f"| {what} | {value:.1f} {unit} | at most {limit:g} {unit} | {'met' if value <= limit else '**missed**'} |")

    def open(self, what: str, address: str, until: str) -> None:
        """Measures how long a page takes to open, in a new browser each time, whose start does not count."""
        paints, shown = [], []
        for _ in range(self.rounds):
            browser = Browser()
            try:
                browser.open(address, until)
                # The page's own clock measures from the navigation until the wanted element is found; it is looked for every 50 ms.
                shown.append(browser.js("performance.now()"))
                paints.append(browser.paint_time())
            finally:
                browser.close()
        self.target(what + ": first paint", statistics.median(paints), 1000, "ms")
        self.target(what + ": all is there", statistics.median(shown), 1000, "ms")
        print(f"bench:   {what}: {statistics.median(paints):.0f}, {statistics.median(shown):.0f} ms", file=sys.stderr)

    def measure(self) -> None:
        wide = self.run(self.count)
        made = self.folder / "report.html"
        self.pipe("report", wide, "-o", str(made))
        self.target(f"Report of {self.count:,} steps: size", made.stat().st_size / 1e6, 5, "MB")
        small = self.run(2)
        self.long_log(small)
        history = History(self.state, small)
        history.add_runs(self.count)
        history.close()
        server = subprocess.Popen([self.program, "serve", "--port", "0", "--state", str(self.state)], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            page = lambda path: address.replace("/?", path)
            self.open(f"Report of {self.count:,} steps", f"file://{made}", ROWS)
            self.open(f"Live page, a run of {self.count:,} steps", page(f"/run/{wide}?"), ROWS)
            self.open(f"Live page, {self.count:,} runs", address, "document.querySelectorAll('table.runs tbody tr').length === 100")
            self.open(f"Live page, a log of {self.log_size >> 20:,} MiB", page(f"/run/{small}?step=load&"), "document.querySelector('.details pre')?.textContent.endsWith('the end\\n')")
        finally:
            server.terminate()
            server.wait()
        self.report("Pages: targets", {}, [], notes=["| page | median | target | |", "|---|---|---|---|", *self.rows])
