"""The report of a run: one HTML file that sends no request, whatever a step prints. If there is a browser, it opens the report."""

import html
import json
import os
import re
import subprocess
import unittest

from support import PipeTest
from support_browser import BROWSER, Browser, axe, violations
from support_history import History

# Prints markup, terminal sequences, a very long line, and a metric whose name is markup.
HOSTILE = r"""import json
print('</script><script>document.title = "taken"</script><img src=x onerror="document.title = 1">')
print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J left\u202eright')
print('10 %\r100 %')
print('x' * 1_000_000)
for step in range(30):
    print('@pipe', json.dumps({'metric': '</script><b>loss', 'value': 1 / (step + 1), 'step': step}))
print('the end <i>of it</i>')
"""


class Report(PipeTest):
    orchestrator = "local"

    def report(self) -> str:
        """Writes the report of the latest run, and returns its text."""
        made = self.pipe("report", "latest", "-o", "report.html")
        self.assertEqual(made.code, 0, made)
        return (self.folder / "report.html").read_text()

    def hostile_run(self):
        self.write("hostile.py", HOSTILE)
        self.pipeline({
            "load": {"command": "echo > ${outputs.data}", "outputs": ["data"]},
            "train": {"command": ["python3", "hostile.py"], "inputs": {"data": "load.data"}, "matrix": {"c": [1, 2]}},
            "broken": {"command": "python3 hostile.py; exit 3", "after": ["load"]},
        }, parameters={"evil": "</script><script>document.title = 'taken'</script>"}, tags=["<b>tag</b>"])
        self.run_pipe(code=1)

    def test_a_missing_run_and_a_missing_folder_are_errors(self):
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe()
        self.assertEqual(self.pipe("report", "nowhere").code, 2)
        self.assertEqual(self.pipe("report", "latest", "-o", "no/such/folder/report.html").code, 3)

    def test_a_device_a_pipe_or_a_link_is_written_to_not_replaced(self):
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe()
        fifo, target, link = (self.folder / name for name in ("fifo", "target", "link"))
        os.mkfifo(fifo)
        target.write_text("old")
        link.symlink_to(target)
        for words in (["report", "latest"], ["export", "latest", "--format", "openlineage"]):
            reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE)
            self.addCleanup(reader.kill)
            made = self.pipe(*words, "-o", fifo)
            self.assertEqual(made.code, 0, made)
            self.assertTrue(fifo.is_fifo(), "a special file is written to, not replaced")
            self.assertIn(b"e2e", reader.communicate(timeout=300)[0])
            self.assertEqual(self.pipe(*words, "-o", link).code, 0)
            self.assertTrue(link.is_symlink())
            self.assertIn("e2e", target.read_text())

    def test_what_a_step_prints_is_never_markup(self):
        self.hostile_run()
        page = self.report()
        self.assertEqual(page.count("</script>"), 2)
        self.assertNotIn("<img", page)
        self.assertNotIn("<b>tag", page)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
        self.assertTrue(policy.startswith("default-src 'none'; style-src 'sha256-"), policy)
        self.assertNotIn("unsafe", policy)
        for address in re.findall(r"https?://[^\"' ]*", page):
            self.assertEqual(address, "http://www.w3.org/2000/svg")
        self.assertLess(len(page), 1 << 20)
        data = json.loads(self.pipe("report", "latest", "--output", "json").out)
        self.assertEqual(data["declared"]["train"]["needs"], ["load"])
        self.assertEqual([step["n"] for step in data["steps"]], ["load", "train.c-1", "train.c-2", "broken"])
        self.assertEqual(data["steps"][1]["f"], [["data", "load.data"]])

    def test_the_report_of_ten_thousand_steps_with_logs_and_pictures_is_below_five_megabytes(self):
        self.write("noise.py", "import os, sys\nopen(sys.argv[1], 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(100_000))\nfor i in range(2000): print('\\x1b[31m<b>&', i)\n")
        self.pipeline({"noise": {"command": "python3 noise.py ${outputs.plot}", "code": ["noise.py"], "outputs": {"plot": {"file": "plot.png"}}}})
        run = self.run_pipe().events("run_started")[0]["run"]
        small = len(self.report())
        history = History(self.state, run)
        history.add_wide_run("many", steps=10_000)
        history.close()
        made = self.pipe("report", "many", "-o", "report.html")
        self.assertEqual(made.code, 0, made)
        size = (self.folder / "report.html").stat().st_size
        self.assertLess(size, 5_000_000)
        self.assertGreater(size, 10 * small, "logs and pictures fill the space that is allowed")

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_a_browser_draws_the_report_and_runs_nothing_of_a_step(self):
        self.hostile_run()
        self.report()
        words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=5000", "--enable-logging=stderr",
                 "--dump-dom", f"file://{self.folder}/report.html"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        drawn = re.sub(r'<script type="application/json".*?</script>', "", done.stdout, flags=re.S)
        self.assertIn("<h2 id=\"failed-title\">What failed</h2>", drawn)
        self.assertNotIn("<title>taken", drawn)
        self.assertNotIn("<img", drawn)
        self.assertNotIn("<i>of it", drawn)
        self.assertIn("the end &lt;i&gt;of it&lt;/i&gt;", drawn)
        self.assertIn("polyline", drawn, "metrics are curves")
        self.assertIn("2 instances", drawn, "the instances are one node")
        self.assertIn("ended with exit code 3", html.unescape(drawn))
        self.assertNotIn("CONSOLE", done.stderr, "nothing is refused by the policy, and no error")

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_it_is_accessible_and_works_by_keyboard(self):
        script = axe()
        if not script:
            self.skipTest("axe-core cannot be had from npm")
        self.hostile_run()
        self.report()
        browser = Browser()
        self.addCleanup(browser.close)
        for dark in (False, True):
            browser.resize(1280 if dark else 400, dark=dark)
            browser.open(f"file://{self.folder}/report.html", "document.querySelector('#steps td')")
            browser.js("document.querySelector('button.open').focus()")
            browser.press("Enter")
            browser.wait("document.querySelector('.details dl')")
            self.assertEqual(violations(browser, script), [])
        self.assertEqual(browser.complaints, [])


if __name__ == "__main__":
    unittest.main()
