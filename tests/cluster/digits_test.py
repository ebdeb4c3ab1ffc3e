"""examples/digits on a cluster: one option more than the run on this machine, the same results; and what has run in one place is reused in the other."""

import os
import pathlib
import shutil
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from support import PipeTest  # noqa: E402

TEST_BED = pathlib.Path("/var/lib/pipe-testbed/kubernetes/kubeconfig")
KUBECONFIG = os.environ.get("KUBECONFIG") or (str(TEST_BED) if TEST_BED.exists() else "")


@unittest.skipUnless(KUBECONFIG, "no cluster: KUBECONFIG is not set, and scripts/testbed/kubernetes has not been started")
class DigitsTest(PipeTest):
    orchestrator = "kubernetes"

    def environment(self, env: dict) -> dict:
        return super().environment({"KUBECONFIG": KUBECONFIG, **env})

    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "examples/digits", self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".pipe"))

    def test_nobody_there_is_told_at_once_and_nothing_is_built(self):
        config = self.write("kubeconfig", "current-context: gone\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                                          "contexts: [{name: gone, context: {cluster: c}}]\n")
        result = self.run_pipe("--no-cache", code=3, KUBECONFIG=str(config))
        self.assertIn("cannot reach the cluster of context 'gone'", result.text)
        self.assertEqual(result.events("build_started"), [])

    def test_digits_come_out_as_they_do_here(self):
        on_cluster = self.run_pipe()
        self.assertEqual(set(on_cluster.steps().values()), {"succeeded"}, on_cluster)
        metrics = self.artifact("evaluate.metrics")
        self.assert_nothing_left()

        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.orchestrator = "docker"
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"}, "an image is the same in both places")
        here = self.run_pipe("--no-cache")
        self.assertEqual(set(here.steps().values()), {"succeeded"}, here)
        self.assertEqual(self.artifact("evaluate.metrics"), metrics)


if __name__ == "__main__":
    unittest.main()
