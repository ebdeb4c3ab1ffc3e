"""Every view of `pipe report` and `pipe serve` at three widths in both themes: nothing is cut off, axe finds no violation, and keyboard and printing work.

With PIPE_PICTURES=FOLDER a picture of each view is written there (scripts/pictures). PIPE_STATES names further state folders, separated by colons, whose newest
runs are checked as well.
"""

import json
import os
import pathlib
import subprocess
import unittest
import urllib.parse

from report_test import HOSTILE
from serve_test import ServeTest
from support import PIPE, wait_until
from support_browser import BROWSER, Browser, axe, violations
from support_history import History

WIDTHS = (390, 800, 1400)  # pixels of a telephone, a half window and a screen
PICTURES = os.environ.get("PIPE_PICTURES")
STATES = [pathlib.Path(state) for state in os.environ.get("PIPE_STATES", "").split(":") if state]
# Elements that extend beyond the page's sides, or whose text is cut off and cannot be scrolled to.
CUT_OFF = """[...document.querySelectorAll('body *')].filter((one) => {
  if (one.closest('svg, .scroll, pre, .skip, .unseen, [hidden], details:not([open]) > :not(summary)')) return false;
  const box = one.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1 || (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline' && one.tagName !== 'INPUT'));
}).map((one) => one.outerHTML.slice(0, 120))"""
# Reports two metrics for 60 steps, and writes a plot and a model.
TRAIN = r"""import json, math, struct, sys, zlib
c, plot, model = float(sys.argv[1]), sys.argv[2], sys.argv[3]
for step in range(60):
    print('@pipe', json.dumps({'metric': 'loss', 'value': math.exp(-step * c / 20) + 0.02 * math.sin(step), 'step': step}))
    print('@pipe', json.dumps({'metric': 'accuracy', 'value': 1 - math.exp(-step * c / 15), 'step': step}))
    if step % 20 == 0: print(f'\x1b[32minfo:\x1b[0m epoch {step} of 60')
def part(kind, body): return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
rows = b''.join(b'\0' + bytes(v for x in range(96) for v in (int(127 + 127 * math.sin(x * c / 9)), int(127 + 127 * math.cos(y / 9)), 160)) for y in range(64))
open(plot, 'wb').write(b'\x89PNG\r\n\x1a\n' + part(b'IHDR', struct.pack('>IIBBBBB', 96, 64, 8, 2, 0, 0, 0)) + part(b'IDAT', zlib.compress(rows)) + part(b'IEND', b''))
open(model, 'w').write('model %s' % c)
"""
# Reports a metric without end, slowly after 100 steps.
LIVE = """import math, time
for step in range(100000):
    if step % 5 == 0: print(f'\x1b[32minfo:\x1b[0m step {step}', flush=True)
    print('@pipe {"metric": "loss", "value": %r, "step": %d}' % (math.exp(-step / 50), step), flush=True)
    time.sleep(0.02 if step < 100 else 0.5)
"""


class View:
    """A page at an address. `until` is an expression that is true once the page is drawn, `then` a statement that is executed after that, and `ready` an
    expression that is true once the statement has had its effect."""

    def __init__(self, name: str, address: str, until: str, then: str = "", ready: str = "true"):
        self.name, self.address, self.until, self.then, self.ready = name, address, until, then, ready


@unittest.skipUnless(BROWSER, "no Chromium")
class Views(ServeTest):
    def setUp(self):
        super().setUp()
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def hostile_run(self) -> str:
        """Runs steps that fail and whose texts are markup or steer terminals, and returns the run's identifier."""
        self.write("hostile.py", HOSTILE)
        self.pipeline({"load": {"command": "echo > ${outputs.data}", "outputs": ["data"]},
                       "broken": {"command": "python3 hostile.py; exit 3", "code": ["hostile.py"], "inputs": {"data": "load.data"}, "matrix": {"c": [1, 2]}},
                       "after": {"command": "true", "after": ["broken"]}},
                      parameters={"evil": "</script><script>document.title = 'taken'</script>", "long": "x" * 300}, tags=["<b>tag</b>", "\u202eevil"])
        return self.run_pipe(code=1).events("run_started")[0]["run"]

    def sweep(self, seed: int) -> str:
        """Runs a matrix of three trainings, and returns the run's identifier."""
        self.write("train.py", TRAIN)
        self.pipeline({"load": {"command": "echo loaded; echo 1 > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": "python3 train.py ${params.c} ${outputs.plot} ${outputs.model}", "code": ["train.py"], "inputs": {"data": "load.data"}, "matrix": {"c": [1, 2, 4]},
                                 "outputs": {"plot": {"file": "plot.png"}, "model": {}}, "settings": {"resources": {"memory": "1GiB"}}},
                       "choose": {"command": "ls ${inputs.models}; echo chosen > ${outputs.best}", "inputs": {"models": "train[*].model"}, "outputs": ["best"]}},
                      parameters={"seed": seed})
        return self.run_pipe().events("run_started")[0]["run"]

    def live_run(self) -> str:
        """Starts a run that ends with the test, and returns its identifier: one step has ended, an instance of a matrix reports, and all others wait."""
        self.write("live.py", LIVE)
        self.pipeline({"load": {"command": "echo loaded; echo 1 > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": "python3 live.py", "code": ["live.py"], "inputs": {"data": "load.data"}, "matrix": {"c": [1, 2, 4]}},
                       "choose": {"command": "true", "after": ["train"]}}, tags=["live"])
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--jobs", "1")
        self.addCleanup(self.finish, process)
        self.addCleanup(process.terminate)

        def reporting() -> str | None:
            runs = json.loads(self.pipe("runs", "--tag", "live", "--output", "json").out)["runs"]
            return next((run["id"] for run in runs if self.pipe("metrics", run["id"], "--csv").out.count("loss") > 20), None)

        return wait_until(reporting, "a run that reports a metric")

    def report(self, state: pathlib.Path, run: str, name: str) -> View:
        """Returns the view of a run's report, with the details of its first step open."""
        made = self.pipe("report", run, "--state", state, "-o", f"{name}.html")
        self.assertEqual(made.code, 0, made)
        return View("report-" + name, f"file://{self.folder}/{name}.html", "document.querySelector('#steps td')", "document.querySelector('button.open').click()", "document.querySelector('.details dl')")

    def page(self, name: str, path: str, until: str, *more: str) -> View:
        """Returns the view of a page of `pipe serve`. `more` has `then` and `ready` of View."""
        return View("serve-" + name, self.address.replace("/?", path + ("&" if "?" in path else "?")), until, *more)

    def views(self) -> list[View]:
        """Returns all views of a state with sweeps, a failed run with hostile texts, a run that goes on, and one of 10,000 steps."""
        swept = [self.sweep(seed) for seed in (1, 2, 3)]
        hostile = self.hostile_run()
        history = History(self.state, swept[0])
        history.add_runs(150)
        history.add_wide_run("many", 10_000)
        history.close()
        live = self.live_run()
        self.serve()
        digest = self.json(f"/api/step?run={swept[0]}&step=choose")["step"]["o"][0][3]
        open_step = "document.querySelector('.details dl') && document.querySelectorAll('pre').length"
        values = "&".join("column=" + one for one in ("metrics.train.c-1.loss", "run.seconds"))
        return [
            self.report(self.state, swept[0], "sweep"), self.report(self.state, hostile, "hostile"), self.report(self.state, "many", "ten-thousand-steps"),
            self.page("runs", "/", "document.querySelectorAll('table.runs tbody tr').length === 100"),
            self.page("filter", "/?" + urllib.parse.urlencode({"where": "params.seed > 1", "sort": "usage.cpu", "column": "params.seed"}), "document.querySelector('table.runs tbody tr')", "document.querySelector('details summary').click()"),
            self.page("wrong-filter", "/?where=params.seed+%3E%3E+1", "document.querySelector('[role=alert]')"),
            self.page("scatter", f"/?{values}&where=run.pipeline+%3D%3D+%27e2e%27&chart=1", "document.querySelectorAll('circle.point').length"),
            self.page("parallel-axes", f"/?{values}&column=usage.cpu&column=params.seed&chart=1", "document.querySelectorAll('polyline.parallel').length"),
            self.page("run", f"/run/{swept[0]}?step=choose", open_step),
            self.page("failed-run", f"/run/{hostile}?step=load", open_step),
            self.page("log", f"/run/{swept[0]}?step=train.c-1", open_step, "document.querySelector('.details').scrollIntoView()"),
            self.page("live-run", f"/run/{live}?step=train.c-1", open_step),
            self.page("ten-thousand-steps", "/run/many", "document.querySelector('#steps tbody tr')"),
            self.page("comparison", f"/compare?run={swept[0]}&run={swept[1]}&run={hostile}", "document.querySelector('table.compared')"),
            self.page("leaderboard", f"/leaderboard?run={swept[0]}&run={swept[1]}&draw=scatter", "document.querySelectorAll('circle.point').length === 6"),
            self.page("leaderboard-of-runs", "/leaderboard?pipeline=e2e&draw=parallel", "document.querySelector('table.leaderboard tbody tr')"),
            self.page("lineage", f"/artifact/{digest}", "document.querySelector('.made')"),
            self.page("machine", "/machine", "document.body.textContent.includes(' busy, load ')"),
        ]

    def views_of(self, state: pathlib.Path) -> list[View]:
        """Returns the views of the report and the page of another state folder's newest run."""
        name = state.parent.name
        server = subprocess.Popen([PIPE, "serve", "--port", "0", "--state", state], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = server.stdout.readline().strip()
        self.addCleanup(server.stdout.close)
        run = json.loads(self.pipe("runs", "--state", state, "--output", "json").out)["runs"][0]["id"]
        return [self.report(state, "latest", name), View("serve-" + name, address.replace("/?", f"/run/{run}?"), "document.querySelector('#steps td')")]

    def show(self, view: View):
        self.browser.open(view.address, view.until)
        if view.then:
            self.browser.js(view.then + "; true")
            self.browser.wait(view.ready)

    def look_at(self, view: View, script: str | None):
        """Checks a view at each width and in both themes. `script` is that of axe."""
        self.show(view)
        # A theme changes colours, and a width the layout. axe takes a second at 10,000 rows, so it checks both themes only at the largest width, which shows
        # most, and one theme at the smallest.
        pairs = [(width, dark) for width in WIDTHS for dark in (False, True)]
        axes = pairs if PICTURES else [(WIDTHS[0], True), (WIDTHS[-1], False), (WIDTHS[-1], True)]
        for width, dark in pairs:
            self.browser.resize(width, dark=dark)
            where = f"{view.name} at {width}, {'dark' if dark else 'light'}"
            if PICTURES:
                self.browser.picture(pathlib.Path(PICTURES) / f"{view.name}-{width}-{'dark' if dark else 'light'}.png", whole=True)
            self.assertEqual(self.browser.js(CUT_OFF), [], where)
            if script and (width, dark) in axes:  # DevTools executes the script, which the page's policy would refuse.
                self.assertEqual(violations(self.browser, script), [], where)

    def check_live(self):
        """Checks that the log of a live run grows on the page, and that its step is shown as running."""
        log = "document.querySelector('.details pre.log').textContent"
        before = self.browser.js(log)
        self.browser.wait(f"{log}.length > {len(before)}")
        self.assertIn("running", self.browser.js("document.querySelector('.details').textContent") + self.browser.js("document.querySelector('#steps').textContent"))

    def test_all_views_are_accessible_at_each_width_in_both_themes(self):
        script = axe()
        for view in self.views() + [view for state in STATES for view in self.views_of(state)]:
            with self.subTest(view=view.name):
                self.look_at(view, script)
                if view.name == "serve-live-run":
                    self.check_live()
        self.assertEqual([one for one in self.browser.complaints if "params.seed" not in one], [], "only the wrong condition is refused")
        if not script:
            self.skipTest("axe-core cannot be had from npm: nothing is cut off, but its rules were not applied")

    def walk(self) -> int:
        """Goes through the page by Tab, and returns the number of elements that can be used. Fails unless Tab meets all of them in their order, and each shows
        a mark."""
        self.browser.js("document.activeElement.blur()")
        usable = self.browser.js("""(window.usable = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
            .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility())).length""")
        for at in range(usable):
            self.browser.press("Tab")
            self.assertTrue(self.browser.js(f"document.activeElement === window.usable[{at}]"), f"{at}: " + self.browser.js("document.activeElement.outerHTML.slice(0, 200)"))
            self.assertNotEqual(self.browser.js("getComputedStyle(document.activeElement).outlineStyle"), "none")
        return usable

    def test_all_can_be_used_by_keyboard(self):
        run = self.sweep(1)
        self.serve()
        report = self.report(self.state, run, "sweep")
        for view in (report, self.page("runs", "/?column=params.seed&chart=1", "document.querySelector('table.runs tbody tr')"), self.page("run", f"/run/{run}", "document.querySelectorAll('.curvechart').length === 2 && document.querySelector('#steps td')")):
            with self.subTest(view=view.name):
                self.browser.open(view.address, view.until)
                self.assertGreater(self.walk(), 10)
        self.browser.open(report.address, report.until)
        self.browser.press("Tab")
        self.browser.press("Enter")
        self.browser.press("Tab")
        self.assertEqual(self.browser.js("document.activeElement.id"), "filter", "the first link skips to the steps")
        self.browser.call("Input.insertText", text="c-2")
        self.browser.wait("document.querySelectorAll('#steps tbody tr').length === 1")
        for _ in range(4):
            self.browser.press("Tab")
        self.browser.press("Space")
        self.browser.wait("document.querySelector('.details pre')")
        self.browser.press("Tab")
        self.assertTrue(self.browser.js("document.activeElement.matches('pre.log')"), "a log can be scrolled by keyboard")

    def test_lines_of_the_graph_lead_around_steps(self):
        after = {"a": [], "b": ["a"], "c1": ["b"], "c2": ["b"], "c3": ["b"], "d": ["c1", "c2", "c3"], "e": ["a", "c1", "c2", "c3", "d"]}
        self.pipeline({name: {"command": "true", "after": needs} for name, needs in after.items()})
        view = self.report(self.state, self.run_pipe().events("run_started")[0]["run"], "graph")
        self.browser.open(view.address, view.until)
        through = """(() => {
          const boxes = [...document.querySelectorAll('#graph rect.box')].map((one) => one.getBBox()), found = [];
          for (const line of document.querySelectorAll('#graph path.edge')) for (let at = 2; at < line.getTotalLength() - 2; at += 2) {
            const { x, y } = line.getPointAtLength(at);
            if (boxes.some((box) => x > box.x + 1 && x < box.x + box.width - 1 && y > box.y && y < box.y + box.height)) found.push([x, y]);
          }
          return found;
        })()"""
        self.assertEqual(self.browser.js("document.querySelectorAll('#graph rect.box').length"), len(after))
        self.assertEqual(self.browser.js(through), [], "no line goes through a box")

    def test_a_report_can_be_printed(self):
        run = self.sweep(1)
        report = self.report(self.state, run, "sweep")
        self.browser.resize(700)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.show(report)
        self.assertEqual(self.browser.js("""[...document.querySelectorAll('.scroll, pre.log, svg')].filter((one) => one.scrollWidth > one.clientWidth + 1
            || one.scrollHeight > one.clientHeight + 1 || one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 120))"""), [], "paper cannot be scrolled")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('nav, .controls, .more')].filter((one) => one.checkVisibility()).length"), 0)
        self.assertEqual(self.browser.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        if PICTURES:
            self.browser.picture(pathlib.Path(PICTURES) / "report-print.png", whole=True)


if __name__ == "__main__":
    unittest.main()
