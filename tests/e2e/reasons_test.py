"""Why a run failed: the terminal, `show`, the report and the page have the same reasons with hints and last lines, equal reasons once."""

import json
import unittest

from serve_test import ServeTest
from support import NOWHERE
from support_browser import BROWSER, Browser

# Fails in one of three ways.
KINDS = ("import sys, time\nn = int(sys.argv[1])\nprint('epoch', n)\nkind = n % 3\n"
         "if kind == 0: raise ValueError(f'bad rate {n}')\nif kind == 1: sys.exit(f'CUDA error at {time.time()}')\nsys.exit(7)\n")


class Reasons(ServeTest):
    """A run with 40 instances that fail in three ways, and a script with Windows line ends, for which there is a hint."""

    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.write("kinds.py", KINDS)
        self.write("dos.sh", "#!/bin/sh\r\necho hi\r\n").chmod(0o755)
        self.pipeline({"fit": {"matrix": {"n": list(range(40))}, "command": "python3 kinds.py ${params.n}", "code": ["kinds.py"]},
                       "dos": {"command": "./dos.sh", "code": ["dos.sh"]},
                       "last": {"command": "true", "after": ["fit"]}})

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def assert_all_told(self, text: str):
        """Fails unless the text has each reason of the instances once, and the hint."""
        self.assertEqual(text.count("instances) failed"), 3, text)
        for reason in ("14 instances", "13 instances", "| ValueError: bad rate", "| CUDA error at", "| epoch", "hint: 'dos.sh' has Windows line ends"):
            self.assertIn(reason, text)

    def test_the_terminal_and_show_tell_the_same(self):
        ended = self.pipe("run", "pipeline.yaml", "-o", "local")
        self.assertEqual(ended.code, 1, ended)
        self.assert_all_told(ended.out)
        self.assert_all_told(self.pipe("show").out)
        step = self.pipe("show", "latest", "fit.n-3").out
        self.assertIn("| ValueError: bad rate 3", step)
        self.assertIn("its whole output: pipe logs", step)
        self.assertIn("hint: 'dos.sh' has Windows line ends", self.pipe("show", "latest", "dos").out)

    def test_json_has_hints_and_lines_of_each_attempt(self):
        self.pipeline({"dos": {"command": "./dos.sh", "code": ["dos.sh"], "retry": {"max_retries": 1}}})
        self.run_pipe(code=1)
        step, = json.loads(self.pipe("show", "--output", "json").out)["steps"]
        for failure in (step["failure"], *(attempt["failure"] for attempt in step["attempts"])):
            self.assertIn("Windows line ends", failure["hints"][0])
            self.assertTrue(any("dos.sh" in line for line in failure["details"]), failure)
        self.assertEqual(len(step["attempts"]), 2)

    def test_a_step_whose_image_cannot_be_built_has_its_reason_too(self):
        self.pipeline({"one": {"command": "true"}}, {"requirements": ["no-such-package-of-anybody==1.0"]})
        self.run_pipe(code=None)
        step, = json.loads(self.pipe("show", "--output", "json").out)["steps"]
        self.assertEqual((step["attempts"], step["failure"]["kind"]), ([], "build"))
        self.assertTrue(step["failure"]["details"])
        self.assertIn("  | ", self.pipe("show").out)

    def test_attach_tells_the_reasons_after_the_end(self):
        self.assertEqual(self.pipe("run", "pipeline.yaml", "-o", "local", "--detach").code, 0)
        self.assert_all_told(self.pipe("attach").out)
        self.assert_all_told(self.pipe("attach").out)

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_the_report_and_the_page_show_each_reason_once(self):
        self.run_pipe(code=1)
        run = json.loads(self.pipe("show", "--output", "json").out)["id"]
        self.assertEqual(self.pipe("report", "-o", "report.html").code, 0)
        browser = Browser()
        self.addCleanup(browser.close)
        self.serve()
        for address, also in ((f"file://{self.folder}/report.html", None), (self.address, f"http://127.0.0.1:{self.port}/run/{run}")):
            browser.open(address)
            if also:
                browser.open(also)
            browser.wait("document.querySelectorAll('#failed .card').length === 4")
            for reason in ("CUDA error at", "ValueError: bad rate"):  # The page reads the first logs, in any order.
                browser.wait(f"document.querySelector('#failed').innerText.includes('{reason}')")
            text = browser.js("document.querySelector('#failed').innerText")
            for reason in ("and 13 more steps", "and 12 more steps", "ValueError: bad rate", "CUDA error at", "hint: 'dos.sh' has Windows line ends"):
                self.assertIn(reason, text)
            self.assertIn("1 skipped (last needs fit, of which 40 failed)", browser.js("document.querySelector('#head').textContent"))
            browser.js("document.querySelector('nav a[href=\"#graph\"]').click()")
            browser.wait("Math.abs(document.querySelector('#graph').getBoundingClientRect().top) < 2 && scrollY > 0")  # The link leads there.
            browser.js("[...document.querySelectorAll('#graph a')].find((one) => one.dataset.step === 'fit').focus()")
            browser.press("Enter")
            self.assertEqual(browser.js("[document.activeElement.value, document.querySelectorAll('#steps tbody tr').length]"), ["fit.", 40])

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_the_page_says_each_reason_first_and_no_metric_before_it(self):
        self.write("train.py", """import json
for i in range(50): print('@pipe', json.dumps({'metric': 'loss', 'value': 1 / (i + 1), 'step': i}))
raise ValueError('the last words')
""")
        self.pipeline({"fit": {"command": "python3 train.py", "code": ["train.py"]}})
        self.run_pipe(code=1)
        run = json.loads(self.pipe("show", "--output", "json").out)["id"]
        self.assertEqual(self.pipe("report", "-o", "report.html").code, 0)
        browser = Browser()
        self.addCleanup(browser.close)
        self.serve()
        for address in (f"file://{self.folder}/report.html", self.address.replace("/?", f"/run/{run}?")):
            browser.open(address, "document.querySelector('#failed pre')?.textContent.includes('the last words')")
            self.assertNotIn("loss = ", browser.js("document.querySelector('#failed pre').textContent"))
            self.assertIn("ValueError: the last words", browser.js("document.querySelector('#result').textContent"))


if __name__ == "__main__":
    unittest.main()
