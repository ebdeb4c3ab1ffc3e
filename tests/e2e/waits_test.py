"""What a step waited for before it ran (a slot, a limit, a retry, an image, an answer), in `show`, in its JSON and in the timeline."""

import json
import time
import unittest

from serve_test import ServeTest
from support import NOWHERE, wait_until
from support_browser import BROWSER, Browser


class Waits(ServeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def waits(self) -> dict[str, dict[str, int]]:
        """Returns the milliseconds that each step's last attempt waited, by what it waited for."""
        steps = json.loads(self.pipe("show", "--output", "json").out)["steps"]
        return {step["step"]: step["attempts"][-1]["phases"].get("waits_ms", {}) for step in steps if step["attempts"]}

    def assert_waited(self, step: str, awaited: str):
        """Fails unless the step waited longest for `awaited`."""
        waits = self.waits()[step]
        self.assertEqual(max(waits, key=waits.get, default=None), awaited, self.waits())

    def test_a_slot_a_limit_a_retry_and_an_environment_are_told_apart(self):
        slow = {"command": "sleep 0.5", "matrix": {"n": [1, 2]}}
        self.pipeline({"work": slow})
        self.run_pipe("--jobs", "1")
        self.assert_waited("work.n-2", "slot")
        self.assertRegex(self.pipe("show", "latest", "work.n-2").out, r"\(slot\)")
        self.pipeline({"work": slow | {"max_parallel": 1}})
        self.run_pipe("--jobs", "4", "--no-cache")
        self.assert_waited("work.n-2", "limit")
        self.pipeline({"again": {"command": "test -e ${checkpoint}/was || { touch ${checkpoint}/was; exit 1; }", "checkpoint": True, "retry": {"max_retries": 1, "delay": "400ms"}}})
        self.run_pipe()
        self.assert_waited("again", "retry")
        self.pipeline({"made": {"command": "python -c 'import idna'"}}, {"requirements": ["idna==3.7"]})
        self.run_pipe()
        self.assert_waited("made", "image")

    def test_a_late_answer_is_what_the_step_waited_for(self):
        self.pipeline({"deploy": {"command": "true", "wait": "Deploy?"}})
        process = self.start("run", "pipeline.yaml", "-o", "local")
        self.addCleanup(self.finish, process)
        wait_until(lambda: json.loads(self.pipe("answer", "latest", "--output", "json").out or "{}").get("questions"), "the question")
        time.sleep(0.5)
        self.assertEqual(self.pipe("answer", "latest", "deploy", "yes").code, 0)
        self.assertEqual(process.wait(300), 0)
        self.assert_waited("deploy", "answer")

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_the_timeline_names_what_steps_waited_for(self):
        self.pipeline({"work": {"command": "sleep 0.5", "matrix": {"n": [1, 2, 3]}, "max_parallel": 1}})
        self.run_pipe("--jobs", "4")
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(f"file://{self.folder}/report.html", "document.querySelector('#timeline svg')")
        text = browser.js("document.querySelector('#timeline').innerText")
        self.assertIn("waiting for a limit", text)
        self.assertRegex(text, r"work\.n-3\. waiting for a limit")
        self.assertIn("A limit held steps back", text)


if __name__ == "__main__":
    unittest.main()
