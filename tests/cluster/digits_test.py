"""examples/digits on a cluster has the same results as on this machine, and steps that have run in one place are reused in the other."""

import json
import shutil
import unittest

from support_cluster import ROOT, ClusterTest, needs_cluster


@needs_cluster
class DigitsTest(ClusterTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "examples/digits", self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".pipe"))

    def test_a_cluster_that_cannot_be_reached_is_an_error_before_anything_is_built(self):
        config = self.write("kubeconfig", "current-context: gone\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                                          "contexts: [{name: gone, context: {cluster: c}}]\n")
        result = self.run_pipe("--no-cache", code=3, KUBECONFIG=str(config))
        self.assertIn("cannot reach the cluster of context 'gone'", result.text)
        self.assertEqual(result.events("build_started"), [])

    def test_results_are_those_of_this_machine_and_steps_are_reused_between_both(self):
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

    def test_only_the_training_is_on_the_cluster(self):
        pipeline = self.folder / "pipeline.yaml"
        text = pipeline.read_text()
        for model in ("logistic", "svc", "forest"):
            text = text.replace(f"  train-{model}:\n", f"  train-{model}:\n    orchestrator: kubernetes\n")
        pipeline.write_text(text)
        self.orchestrator = "docker"
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual(result.events("run_started")[0]["orchestrator"], "docker, kubernetes")
        self.assertGreater(json.loads(self.artifact("evaluate.metrics"))["svc"]["accuracy"], 0.97)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
