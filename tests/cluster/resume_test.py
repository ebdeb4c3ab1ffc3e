"""Drivers (`pipe run`) that are killed at any moment: a resumed run continues, and no step runs twice. KILLS is the number of kills (default: 8)."""

import os
import random
import signal
import subprocess
import time
import unittest

from support_cluster import ClusterTest, needs_cluster

KILLS = int(os.environ.get("KILLS", "8"))


@needs_cluster
class ResumeTest(ClusterTest):
    def write_pipeline(self):
        # The names of steps have the test's mark, so that those of their Jobs have it, by which pods_made() finds them.
        step = {"command": "sleep ${params.s}; cat /etc/hostname > ${outputs.pod}", "parameters": {"s": 0.5}, "outputs": ["pod"]}
        steps = {}
        for row in range(4 + KILLS // 3):  # Enough steps that the run lasts until all drivers have been killed.
            for lane in "ab":
                before = {} if row == 0 else {"inputs": {"before": f"{self.mark}{lane}{row - 1}.pod"}}
                steps[f"{self.mark}{lane}{row}"] = {**step, **before, "cache": row % 2 == 0}
        self.pipeline(steps)
        return steps

    def test_nothing_runs_twice_however_often_the_driver_is_killed(self):
        steps = self.write_pipeline()
        chance = random.Random(f"{time.time()}")
        words = ("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        kills = 0
        while True:
            process = self.start(*words)
            try:
                out, err = process.communicate(timeout=chance.uniform(0.05, 1.5) if kills < KILLS else 300)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                words = ("resume", "--output", "json") if self.pipe("show", "latest").code == 0 else words
                continue
            self.assertEqual(process.returncode, 0, out + err)
            break
        self.assertEqual(kills, KILLS)
        made = self.pods_made()
        self.assertEqual(len(made), len(steps), made)
        self.assertEqual(set(made.values()), {1}, made)
        for name in steps:
            self.assertIn(name, self.artifact(f"{name}.pod"), "the pod's own name")
        self.assertEqual(self.jobs(), [])
        self.assertEqual(len(self.pipe("runs").out.splitlines()), 2, "a heading and one run")
        self.assert_nothing_left()

    def test_a_run_that_has_ended_is_not_resumed(self):
        self.pipeline({"x": {"command": ["true"]}})
        self.assertIn("there is no state folder", self.pipe("resume").text)
        self.run_pipe()
        result = self.pipe("resume")
        self.assertEqual(result.code, 2, result)
        self.assertIn("has ended: succeeded", result.err)


if __name__ == "__main__":
    unittest.main()
