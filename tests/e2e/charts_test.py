"""Curves, the leaderboard and the timeline of the pages, in a real browser: as a user compares instances and runs."""

import html
import json
import pathlib
import re
import struct
import time
import unittest

from serve_test import ServeTest
from support import wait_until
from support_browser import BROWSER, Browser
from support_history import History

# Reports a falling curve for a rate and a fold. One of the folds has a peak of one training step.
TRAIN = """import json, math, sys
rate, fold, values = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for step in range(values):
    loss = 1 + 10 * math.exp(-step * rate * 10 / values) + fold / 10
    if rate == 0.5 and fold == 2 and step == values // 2: loss = 99
    print('@pipe', json.dumps({'metric': 'val_loss', 'value': loss, 'step': step}))
print('@pipe', json.dumps({'metric': 'accuracy', 'value': round(rate + fold / 100, 4)}))
print('@pipe', json.dumps({'metric': '</script><b>evil\\u202e', 'value': 1}))
"""
# Reports six values, and three more once a file exists.
LIVE = """import pathlib, sys, time
for step in range(5): print('@pipe {"metric": "val_loss", "value": %d, "step": %d}' % (step + 1, step), flush=True)
time.sleep(5.5)  # The driver stores values at most every five seconds, when the next value arrives.
print('@pipe {"metric": "val_loss", "value": 6, "step": 5}', flush=True)
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)
for step in range(6, 9): print('@pipe {"metric": "val_loss", "value": %d, "step": %d}' % (step + 1, step), flush=True)
"""
RATES, FOLDS = (0.1, 0.5, 1), (1, 2, 3)
PAGE = pathlib.Path(__file__).parents[2] / "templates/page"


def points_of(line: str) -> str:
    """Returns a JavaScript expression: the coordinates of a line's points. `line` is an expression for the element."""
    return f"{line}.getAttribute('points').split(' ').map((one) => one.split(',').map(Number))"


@unittest.skipUnless(BROWSER, "no Chromium")
class Charts(ServeTest):
    def setUp(self):
        super().setUp()
        self.browser = Browser(1000)
        self.addCleanup(self.browser.close)

    def folds(self, values: int = 50, seed: int = 1) -> str:
        """Runs three folds of three rates, each with this many values, and returns the run's identifier."""
        self.write("train.py", TRAIN)
        self.pipeline({"load": {"command": "echo 1 > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": f"python3 train.py ${{params.rate}} ${{params.fold}} {values}", "code": ["train.py"], "inputs": {"data": "load.data"}, "matrix": {"rate": list(RATES), "fold": list(FOLDS)}}}, parameters={"seed": seed})
        return self.run_pipe().events("run_started")[0]["run"]

    def report(self):
        """Opens the report of the latest run."""
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        self.browser.open(f"file://{self.folder}/report.html", "document.querySelector('.curvechart')")

    def lines(self, chart: str = "figure.chart") -> int:
        """Returns the number of lines in a chart."""
        return self.browser.js(f"document.querySelector('{chart}').querySelectorAll('g > polyline.line').length")

    def choose(self, id: str, value: str):
        """Chooses a value in the page's element of this id."""
        self.browser.js(f"(() => {{ const node = document.getElementById('{id}'); node.value = '{value}'; node.dispatchEvent(new Event('change')); }})()")

    def drag(self, start: float, end: float):
        """Drags across the first chart, from one part of its width to another."""
        self.browser.js("document.querySelector('.curvechart').scrollIntoView({block: 'center'})")
        box = self.browser.js("(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector('.curvechart').getBoundingClientRect())")
        at = lambda part: {"x": box["x"] + box["width"] * part, "y": box["y"] + box["height"] / 2}  # noqa: E731
        for kind, part in (("mousePressed", start), ("mouseMoved", (start + end) / 2), ("mouseReleased", end)):
            self.browser.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **at(part))

    def test_a_metric_is_one_chart_of_all_instances_with_options(self):
        self.folds()
        self.report()
        self.assertEqual(self.browser.js("document.querySelectorAll('figure.chart').length"), 1, "a metric is one chart, and single values are none")
        self.assertIn("9 curves, 450 values", self.browser.js("document.querySelector('figure.chart').textContent"))
        self.assertEqual(self.lines(), len(RATES), "folds are averaged")
        self.assertEqual(self.browser.js("document.querySelectorAll('figure.chart polygon').length"), len(RATES), "with a band")
        self.assertIn("training step", self.browser.js("document.querySelector('.curvechart').textContent"))
        self.assertGreater(self.browser.js("document.querySelectorAll('.curvechart text').length"), 5, "axes have ticks")
        self.choose("curve-mean", "")
        self.assertEqual(self.lines(), len(RATES) * len(FOLDS))
        for parameter, colours in (("rate", 3), ("fold", 3), ("line", 8)):
            self.choose("curve-colour", parameter)
            self.assertEqual(self.browser.js("new Set([...document.querySelectorAll('g > polyline.line')].map((one) => one.getAttribute('stroke'))).size"), colours, parameter)
        self.browser.js("document.getElementById('curve-log').click()")
        self.assertIn("50", self.browser.js("[...document.querySelectorAll('.curvechart text')].map((one) => one.textContent)"), "powers of ten and between them")
        before = self.browser.js(points_of("document.querySelector('g > polyline.line')"))
        self.browser.js("(() => { const node = document.getElementById('curve-smooth'); node.value = 0.9; node.dispatchEvent(new Event('input')); })()")
        self.assertNotEqual(self.browser.js(points_of("document.querySelector('g > polyline.line')")), before)
        self.choose("curve-x", "time")
        self.assertIn("time since the first value", self.browser.js("document.querySelector('.curvechart').textContent"))
        self.assertEqual(self.browser.complaints, [])

    def test_values_can_be_read_by_pointer_keyboard_and_table(self):
        self.folds()
        self.report()
        self.choose("curve-mean", "")
        self.browser.js("document.querySelector('.curvechart').scrollIntoView({block: 'center'})")
        box = self.browser.js("(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector('.curvechart').getBoundingClientRect())")
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"] + box["width"] * 0.53, y=box["y"] + 12)
        self.assertEqual(self.browser.js("document.querySelector('.told').textContent"), "fold=2, rate=0.5: 99 at step 25")
        self.browser.js("document.querySelector('.curvechart').focus()")
        for _ in range(2):
            self.browser.press("ArrowRight")
        self.assertIn("at step 27", self.browser.js("document.querySelector('.told').textContent"))
        self.browser.press("ArrowDown")
        self.assertIn("fold=3, rate=0.5", self.browser.js("document.querySelector('.told').textContent"))
        self.browser.js("document.querySelector('figure.chart details').open = true")
        self.browser.wait("document.querySelectorAll('figure.chart tbody tr').length === 9")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('figure.chart tbody tr')[4].cells].map((one) => one.textContent)")[3:4], ["99"])

    def test_a_part_is_enlarged_with_more_values_from_the_server(self):
        run = self.folds(values=20_000)
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{run}?mean=nothing&"), "document.querySelectorAll('g > polyline.line').length === 9")
        self.assertLessEqual(self.browser.js("Math.max(...[...document.querySelectorAll('g > polyline.line')].map((one) => one.getAttribute('points').split(' ').length))"), 200)
        box = json.loads(self.ask(f"/api/curves?run={run}&name=val_loss")[2])
        self.assertEqual([len(box), max(point[1] for one in box for point in one["curve"])], [9, 99], "a peak of one step in 20,000 stays")
        self.drag(0.4, 0.6)
        self.browser.wait("[...document.querySelectorAll('button')].some((one) => one.textContent === 'Show all' && one.checkVisibility())")
        wait_until(lambda: any("from=" in url and "/api/curves" in url for url in self.browser.requests), "a request for a part")
        part = json.loads(self.ask(f"/api/curves?run={run}&name=val_loss&from=9900&to=10100")[2])
        self.assertEqual({point[0] for one in part for point in one["curve"] if point[1] == 99}, {10_000})
        self.assertGreater(len([point for point in part[0]["curve"] if 9900 <= point[0] <= 10100]), 150, "nearly each value of a small part")
        self.assertIn("mean=nothing", self.browser.js("location.search"))

    def test_runs_are_laid_over_each_other_while_they_go(self):
        first = self.folds(seed=1)
        gate = self.folder / "gate"
        self.write("live.py", LIVE)
        self.pipeline({"train": {"command": ["python3", "live.py", str(gate)], "code": ["live.py"]}}, tags=["live"])
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local")
        self.addCleanup(self.finish, process)
        self.addCleanup(gate.touch)
        live = wait_until(lambda: next((run["id"] for run in json.loads(self.pipe("runs", "--tag", "live", "--output", "json").out)["runs"] if self.pipe("metrics", run["id"], "--csv").out.count("val_loss") >= 5), None), "values")
        self.serve()
        self.browser.open(self.address.replace("/?", f"/compare?run={first}&run={live}&mean=nothing&"), "document.querySelectorAll('g > polyline.line').length === 10")
        self.assertEqual(self.browser.js("document.getElementById('curve-colour').value"), "run")
        self.assertEqual(self.browser.js("new Set([...document.querySelectorAll('g > polyline.line')].map((one) => one.getAttribute('stroke'))).size"), 2)
        self.browser.wait("document.querySelector('figcaption').textContent.includes('456 values')")  # The sixth value is stored later.
        gate.touch()
        self.browser.wait("document.querySelector('figcaption').textContent.includes('459 values')")

    def test_a_thousand_curves_of_a_million_values_are_reduced_and_drawn(self):
        run = self.folds()
        history = History(self.state, run)
        history.add_wide_run("many", 1000)
        blob = b"".join(struct.pack("<qqd", step, 1_700_000_000_000 + step, 7.0 if step == 500 else step / 1000) for step in range(1000))
        for i in range(1000):
            history.database.execute("INSERT INTO metrics (run, step, attempt, name, first, count, last, points) VALUES ('many', ?, 1, 'loss', 0, 1000, ?, ?)", (f"work.i-{i}", blob[-24:], blob))
        history.database.commit()
        history.close()
        self.serve()
        began = time.monotonic()
        _, _, body = self.ask("/api/curves?run=many&name=loss")
        asked, curves = time.monotonic() - began, json.loads(body)
        self.assertEqual((len(curves), sum(one["points"] for one in curves)), (1000, 1_000_000))
        self.assertLess(len(body), 3_000_000)
        self.assertEqual({max(point[1] for point in one["curve"]) for one in curves}, {7}, "the highest value stays")
        self.assertEqual({(one["curve"][0][0], one["curve"][-1][0]) for one in curves}, {(0, 999)}, "the first and the last value stay")
        self.browser.open(self.address.replace("/?", "/run/many?"), "document.querySelectorAll('g > polyline.line').length === 1000")
        drawn = self.browser.js("(() => { const began = performance.now(); document.getElementById('curve-log').click(); document.querySelector('.curvechart').getBoundingClientRect(); return performance.now() - began; })()")
        moved = self.browser.js("""(() => { const chart = document.querySelector('.curvechart'), box = chart.getBoundingClientRect(), began = performance.now();
            for (let i = 0; i < 20; ++i) chart.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + 100 + i * 10, clientY: box.y + 80})); return (performance.now() - began) / 20; })()""")
        print(f"a million values: {asked:.2f} s and {len(body) >> 10} KiB from the server, drawn in {drawn:.0f} ms, pointed at in {moved:.1f} ms", flush=True)
        self.assertEqual(self.browser.complaints, [])

    def rows(self) -> list[list[str]]:
        """Returns the texts of the leaderboard's cells, by row."""
        return self.browser.js("[...document.querySelectorAll('table.leaderboard tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent.trim()))")

    def test_a_leaderboard_of_instances_is_sorted_filtered_and_drawn(self):
        run = self.folds()
        self.serve()
        self.browser.open(self.address.replace("/?", f"/leaderboard?run={run}&"), "document.querySelector('table.leaderboard tbody tr')")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('table.leaderboard th')].map((one) => one.textContent.replace(/ .$/u, ''))"), ["rate", "accuracy", "val_loss"], "parameters before metrics, folds averaged")
        self.assertIn("each the mean of 3", self.browser.text())
        self.assertIn("seed = 1", self.browser.text())
        self.assertEqual([row[0] for row in self.rows()], ["1", "0.5", "0.1"], "the best first")
        self.assertTrue(self.rows()[0][1].startswith("\u2605 1.02 \u00b1 0.0082"), self.rows()[0])
        self.browser.js("[...document.querySelectorAll('.sort')].find((one) => one.textContent.startsWith('rate')).click()")
        self.browser.js("[...document.querySelectorAll('.sort')].find((one) => one.textContent.startsWith('rate')).click()")
        self.assertEqual([row[0] for row in self.rows()], ["0.1", "0.5", "1"])
        self.browser.js("document.querySelector('#where').focus()")
        self.browser.call("Input.insertText", text="params.rate >= 0.5 and metrics.accuracy < 1.025")
        self.browser.press("Enter")
        self.browser.wait("document.querySelectorAll('table.leaderboard tbody tr').length === 2")
        self.assertEqual([row[-1] for row in self.rows()], ["3", "2"], "the condition is about instances")
        self.choose("leaderboard-mean", "")
        self.choose("leaderboard-chart", "scatter")
        self.browser.wait("document.querySelectorAll('circle.point').length === 5")
        before = self.rows()
        self.browser.call("Page.reload")
        self.browser.wait("document.querySelectorAll('circle.point').length === 5")
        self.assertEqual(self.rows(), before, "all that was chosen is in the address")
        self.choose("leaderboard-chart", "parallel")
        self.browser.wait("document.querySelectorAll('polyline.parallel').length === 5")
        self.browser.open(self.address.replace("/?", f"/leaderboard?run={run}&where=params.x+%3E%3E&"), "document.querySelector('[role=alert]')")

    def test_a_leaderboard_begins_with_the_metric_that_says_how_good_a_row_is(self):
        self.write("trial.py", """import json, sys
rate = float(sys.argv[1])
for name, value in (("a_seconds", 9 - rate), ("b_loss", rate), ("train_accuracy", rate), ("val_accuracy", 1 - rate)): print('@pipe', json.dumps({'metric': name, 'value': value}))
""")
        self.pipeline({"trial": {"command": "python3 trial.py ${params.rate}", "code": ["trial.py"], "matrix": {"rate": [0.1, 0.2, 0.3]}}}, parameters={"items": list(range(5000))})
        run = self.run_pipe().events("run_started")[0]["run"]
        self.serve()
        self.assertLess(len(self.ask(f"/api/leaderboard?run={run}")[2]), 5000, "a long parameter of the run is in no row")
        self.assertEqual(len(json.loads(self.ask(f"/api/leaderboard?run={run}&where=params.rate+%3C+0.25")[2])["rows"]), 2)
        self.browser.open(self.address.replace("/?", f"/leaderboard?run={run}&"), "document.querySelector('table.leaderboard tbody tr')")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('table.leaderboard th')].map((one) => one.textContent.replace(/ .$/u, ''))"), ["#", "rate", "val_accuracy", "train_accuracy", "b_loss", "a_seconds"])
        self.assertEqual([row[:2] for row in self.rows()], [["1", "0.1"], ["2", "0.2"], ["3", "0.3"]])
        self.browser.js("document.querySelector('td.rank a').click()")
        self.browser.wait("document.querySelector('.details dl')")
        self.assertIn("characters)", self.browser.js("document.querySelector('#head').textContent"), "a long parameter is cut")

    def test_a_failed_instance_is_not_the_best_one(self):
        self.write("trial.py", """import json, sys
rate = float(sys.argv[1])
if rate > 0.3: raise OSError('no data')
for name, value in (("a_loss", 1 - rate), ("val_accuracy", rate)): print('@pipe', json.dumps({'metric': name, 'value': value}))
if rate > 0.2: raise ValueError('diverged')
""")
        self.pipeline({"trial": {"command": "python3 trial.py ${params.rate}", "code": ["trial.py"], "matrix": {"rate": [0.1, 0.2, 0.3, 0.4]}}})
        self.run_pipe(code=1)
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        self.browser.open(f"file://{self.folder}/report.html", "document.querySelector('table.leaderboard tbody tr')")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('.headline')].map((one) => one.querySelector('.title').textContent + ' ' + one.querySelector('.big').textContent)"), ["trial.val_accuracy 0.2", "trial.a_loss 0.8"])
        self.assertEqual([(row[1], row[-1]) for row in self.rows()], [("0.2", ""), ("0.1", ""), ("0.3", "failed"), ("0.4", "failed")])
        self.assertEqual(self.browser.js("[...document.querySelectorAll('td.best')].map((one) => one.closest('tr').rowIndex)"), [1, 1])

    def test_curves_are_coloured_by_the_parameter_that_explains_their_ends(self):
        scripts = "".join((PAGE / f"{name}.js").read_text() for name in ("texts", "curves", "leaderboard"))
        chosen = """(() => { const rows = Array.from({ length: 64 }, (_, i) => ({ metric: 'loss', last: i / 64 + i % 5, p: { few: i % 2, rate: i === 9 ? '0.09' : i / 100, noise: i * 29 % 64, part: i % 5 } }));
            const even = withNumericParameters(rows); return [even[9].p.rate, tellingParameter(even, ['few', 'noise', 'part']), tellingParameter(even.map((one) => ({ ...one, last: one.p.rate ** 2 })), ['few', 'noise', 'rate', 'part'])]; })()"""
        self.assertEqual(self.browser.js(scripts + chosen), [0.09, "part", "rate"], "a number written as text, and what explains the last values")

    def test_a_leaderboard_of_runs_has_the_runs_of_one_pipeline(self):
        runs = [self.folds(seed=seed) for seed in (1, 2)]
        self.serve()
        self.browser.open(self.address.replace("/?", "/leaderboard?"), "document.querySelectorAll('table.leaderboard tbody tr').length === 2")
        self.assertEqual({row[0] for row in self.rows()}, set(runs) if not self.rows()[0][0].isdigit() else {"1", "2"})
        self.pipeline({"other": {"command": "echo '@pipe {\"metric\": \"loss\", \"value\": 1}'"}}, name="other")
        self.run_pipe()
        self.browser.open(self.address.replace("/?", "/leaderboard?"), "document.querySelectorAll('#leaderboard-step option').length === 2")
        self.assertEqual(len(self.rows()), 2, "runs of other pipelines are not among these")
        self.assertEqual(self.browser.js("document.querySelector('#leaderboard-step').closest('label').querySelector('span').textContent"), "Pipeline")
        self.browser.open(self.address.replace("/?", f"/leaderboard?run={runs[0]}&run={runs[1]}&over=nothing&"), "document.querySelectorAll('table.leaderboard tbody tr').length === 18")

    def test_the_timeline_has_names_order_waits_and_the_critical_path(self):
        self.pipeline({"load": {"command": "sleep 0.3; echo 1 > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": "sleep ${params.n}", "inputs": {"data": "load.data"}, "matrix": {"n": [0.3, 0.9, 0.6]}},
                       "choose": {"command": "sleep 0.2", "after": ["train"]}, "aside": {"command": "true"}})
        self.run_pipe("--jobs", "1")
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        self.browser.open(f"file://{self.folder}/report.html", "document.querySelector('#timeline svg')")
        names = self.browser.js("[...document.querySelectorAll('#timeline text.rowname')].map((one) => one.textContent)")
        self.assertEqual([one for one in names if one.startswith("train")], ["train.n-0.3", "train.n-0.9", "train.n-0.6"], "the order of the matrix")
        self.assertEqual(len(names), 6)
        critical = self.browser.js("[...document.querySelectorAll('#timeline g.critical text.rowname')].map((one) => one.textContent)")
        self.assertEqual((critical[0], critical[-1], len(critical)), ("load", "choose", 3))
        text = self.browser.js("document.querySelector('#timeline').innerText")
        self.assertIn("Critical path", text)
        self.assertIn("waiting for a slot", text)
        self.assertIn("--jobs", text)
        self.assertRegex(text, r"The command of train\S+ is the longest on the critical path")

    def test_many_instances_share_the_rows_of_the_timeline(self):
        self.pipeline({"load": {"command": "true"}, "work": {"command": "true", "after": ["load"], "matrix": {"n": list(range(70))}}})
        self.run_pipe("--jobs", "4")
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        self.browser.open(f"file://{self.folder}/report.html", "document.querySelector('#timeline svg')")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('#timeline text.rowname')].map((one) => one.textContent)"), ["load", "work \u00d7 70"])
        rows = self.browser.js("new Set([...document.querySelectorAll('#timeline svg[role=img] g rect')].map((one) => one.getAttribute('y'))).size")
        self.assertLessEqual(rows, 5, "there are as many rows as steps ran at a time")

    def test_a_run_in_the_cell_of_a_notebook_is_a_sandboxed_frame(self):
        self.folds()
        frame = self.pipe("show", "latest", "--output", "html").out
        self.assertRegex(frame, r'^<iframe title="Run \S+ of e2e" sandbox="allow-scripts" ')
        self.assertNotIn("<", frame[1:frame.rindex("</iframe>")], "no text of the run is an element of the notebook")
        (self.folder / "notebook.html").write_text("<!doctype html><title>notebook</title><h1>Cell</h1>" + frame)
        self.browser.open(f"file://{self.folder}/notebook.html", "document.querySelector('iframe')")
        self.assertEqual(self.browser.js("document.title"), "notebook")
        self.assertIsNone(self.browser.js("document.querySelector('iframe').contentDocument"), "the frame is of another origin")
        self.assertEqual(self.browser.complaints, [])
        source = html.unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1))
        (self.folder / "cell.html").write_text(source)
        self.browser.open(f"file://{self.folder}/cell.html", "document.querySelector('.curvechart')")
        self.assertEqual(self.pipe("show", "latest", "train.c-1", "--output", "html").code, 2)


if __name__ == "__main__":
    unittest.main()
