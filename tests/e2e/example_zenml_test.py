"""examples/quickstart and examples/e2e, unchanged, with scikit-learn: gates, search, promotion, comparison, drift and notifications."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from support import PipeTest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def has_index() -> bool:
    """Returns whether pip finds scikit-learn in an index."""
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "-q", "scikit-learn==1.7.2"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300).returncode == 0


class Example(PipeTest):
    orchestrator = "local"
    example = ""

    @classmethod
    def setUpClass(cls):
        if not has_index():
            raise unittest.SkipTest("no index of Python packages")

    def setUp(self):
        super().setUp()
        shutil.copytree(EXAMPLES / self.example, self.folder, dirs_exist_ok=True)

    def run_file(self, file: str, *words, code: int = 0) -> dict[str, str]:
        """Runs a pipeline file, and returns the final status of each step. `code` is the expected exit code."""
        result = self.pipe("run", file, "--orchestrator", self.orchestrator, "--output", "json", *words, timeout=600)
        self.assertEqual(result.code, code, result)
        return result.steps()

    def versions(self, name: str) -> int:
        """Returns how many versions are published under a name."""
        listed = self.pipe("artifacts", "--name", name, "--output", "json")
        return len(json.loads(listed.out)["versions"]) if listed.code == 0 else 0


class Quickstart(Example):
    example = "quickstart"

    def test_the_best_model_predicts_if_it_is_good_enough(self):
        steps = self.run_file("pipeline.yaml")
        self.assertEqual(set(steps.values()), {"succeeded"})
        self.assertGreater(json.loads(self.artifact("evaluate.metrics"))["accuracy"], 0.93)
        self.assertEqual(len(self.artifact("predict.predictions").splitlines()), 51)
        gated = self.run_file("pipeline.yaml", "-p", "min_accuracy=0.9999")
        self.assertEqual((gated.pop("predict"), set(gated.values())), ("skipped", {"cached"}))
        other = self.run_file("pipeline.yaml", "-p", "test_size=0.5", "--step", "train[model=sgd]")
        self.assertEqual(other, {"load": "cached", "split": "succeeded", "train.model-sgd": "succeeded"})


class EndToEnd(Example):
    example = "e2e"

    def test_search_gate_promotion_comparison_drift_and_notifications(self):
        self.run_file("predict.yaml", code=3)  # nothing is in production
        gate = self.run_file("train.yaml", "-p", "min_test=1.01")
        self.assertEqual((gate["evaluate"], gate["promote"], gate["notify"], gate["notify-failure"]), ("succeeded", "skipped", "succeeded", "skipped"))
        self.assertEqual(self.versions("wine-model"), 0)

        first = self.run_file("train.yaml")
        self.assertEqual((first["train"], first["promote"], first["notify"]), ("cached", "succeeded", "succeeded"))
        metrics = json.loads(self.artifact("evaluate.metrics"))
        self.assertGreater(metrics["test"], 0.9)
        self.assertEqual(metrics["production"], 0)
        again = self.run_file("train.yaml")
        self.assertEqual((again["evaluate"], again["promote"], self.versions("wine-model")), ("succeeded", "skipped", 1), "the model is not better than that in production")

        used = self.run_file("predict.yaml")
        self.assertEqual((used["predict"], used["notify"]), ("succeeded", "succeeded"))
        self.assertEqual(len(self.artifact("predict.predictions").splitlines()), 61)
        drifted = self.run_file("predict.yaml", "-p", "shift=3")
        self.assertEqual((drifted["drift"], drifted["predict"], drifted["notify"]), ("succeeded", "skipped", "succeeded"))

        (self.folder / "search.py").write_text("raise SystemExit(3)\n")
        failed = self.run_file("train.yaml", code=1)
        self.assertEqual((failed["promote"], failed["notify-failure"], failed["notify"]), ("skipped", "succeeded", "succeeded"))


if __name__ == "__main__":
    unittest.main()
