"""examples/promotion as it stands: the gate, the comparison with production, the promotion, the notification, and the pipeline that predicts."""

import json
import pathlib
import shutil
import unittest

from support import PipeTest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "promotion"


class Promotion(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        shutil.copytree(EXAMPLE, self.folder, dirs_exist_ok=True)

    def run_file(self, file: str, *words, code: int = 0):
        """Runs a pipeline file, and returns the Result. `code` is the expected exit code."""
        result = self.pipe("run", file, "--orchestrator", self.orchestrator, "--output", "json", *words)
        self.assertEqual(result.code, code, result)
        return result

    def versions(self) -> dict[int, bool]:
        """Returns the published versions of the classifier; true for the current one."""
        listed = self.pipe("artifacts", "--name", "classifier", "--output", "json")
        return {version["version"]: version["current"] for version in json.loads(listed.out)["versions"]} if listed.code == 0 else {}

    def test_only_a_better_model_gets_into_production(self):
        refused = self.run_file("predict.yaml", code=3)
        self.assertIn("nothing is published as 'classifier'", refused.out)

        gate = self.run_file("train.yaml", "-p", "min_accuracy=0.999").steps()
        self.assertEqual((gate["evaluate"], gate["promote"], gate["notify"]), ("succeeded", "skipped", "succeeded"))
        self.assertEqual(self.versions(), {})

        first = self.run_file("train.yaml").steps()
        self.assertEqual((first["load"], first["promote"], first["notify"]), ("cached", "succeeded", "succeeded"))
        self.assertEqual(self.versions(), {1: True})
        metrics = json.loads(self.artifact("evaluate.metrics"))
        self.assertGreater(metrics["accuracy"], 0.9)
        self.assertEqual(metrics["production"], 0)

        again = self.run_file("train.yaml").steps()  # The same model is in production now, and is not better than itself.
        self.assertEqual((again["train.model-perceptron"], again["evaluate"], again["promote"], again["notify"]), ("cached", "succeeded", "skipped", "succeeded"))
        metrics = json.loads(self.artifact("evaluate.metrics"))
        self.assertEqual(metrics["accuracy"], metrics["production"])
        self.assertEqual(self.versions(), {1: True})

        self.assertEqual(self.run_file("predict.yaml").steps(), {"load": "succeeded", "predict": "succeeded"})
        self.assertEqual(len(self.artifact("predict.predictions").splitlines()), 20)
        self.assertEqual(self.run_file("predict.yaml").steps(), {"load": "cached", "predict": "cached"})

    def test_a_failed_run_is_notified_too(self):
        (self.folder / "load.py").write_text("raise SystemExit(3)\n")
        steps = self.run_file("train.yaml", code=1).steps()
        self.assertEqual((steps["load"], steps["promote"], steps["notify"]), ("failed", "skipped", "succeeded"))


class PromotionInContainers(Promotion):
    orchestrator = "docker"


if __name__ == "__main__":
    unittest.main()
