"""Metrics as a user sees them: in the terminal while a run goes on, over attempts, and in tables with the results first."""

import csv
import io
import json
import unittest

from support import NOWHERE, PipeTest

# Reports ten epochs. The first attempt saves its state after epoch 3 and fails after epoch 5; the second attempt continues with epoch 3.
TRAIN = """import json, pathlib, sys
saved = pathlib.Path(sys.argv[1]) / "epoch"
begin = int(saved.read_text()) if saved.exists() else 0
for epoch in range(begin, 10):
    print("@pipe", json.dumps({"metric": "loss", "value": 1 / (epoch + 1), "step": epoch}), flush=True)
    if epoch == 3: saved.write_text("3")
    if epoch == 5 and begin == 0: sys.exit("power cut")
"""


class Curves(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def test_the_terminal_has_last_values_and_not_each_line(self):
        self.pipeline({"train": {"command": """for i in 1 2 3; do echo "@pipe {\\"metric\\": \\"loss\\", \\"value\\": $i.5, \\"step\\": $i}"; done; echo said"""}})
        usual = self.pipe("run", "pipeline.yaml", "-o", "local").out
        self.assertNotIn("loss = ", usual)
        self.assertIn("[train] said", usual)
        self.assertRegex(usual, r"\[train\] succeeded after [^:]*: loss 3.5 \(step 3\)")
        self.assertIn("loss = 2.5", self.pipe("logs", "latest", "train").out)
        self.assertIn("[train] loss = 2.5", self.pipe("run", "pipeline.yaml", "-o", "local", "--no-cache", "--verbose").out)

    def test_quiet_shows_only_the_end(self):
        self.pipeline({"train": {"command": "echo said"}, "bad": {"command": "echo reason; exit 3"}})
        quiet = self.pipe("run", "pipeline.yaml", "-o", "local", "--quiet")
        self.assertEqual(quiet.code, 1)
        self.assertNotIn("[train]", quiet.out)
        self.assertIn("bad failed: ended with exit code 3", quiet.out)
        self.assertIn("  | reason", quiet.out)
        events = self.run_pipe("--quiet", code=1).out.splitlines()
        self.assertEqual([json.loads(line)["event"] for line in events], ["summary"])
        self.assertEqual(self.pipe("run", "pipeline.yaml", "--quiet", "--verbose").code, 2)

    def test_an_attempt_that_continues_continues_the_curve(self):
        self.write("train.py", TRAIN)
        self.pipeline({"train": {"command": "python3 train.py ${checkpoint}", "code": ["train.py"], "retry": {"max_retries": 1}}})
        self.run_pipe()
        loss, = json.loads(self.pipe("metrics", "--output", "json").out)["metrics"]
        self.assertEqual([(point["training_step"], point["attempt"]) for point in loss["series"]], [(step, 1 if step < 3 else 2) for step in range(10)])
        self.assertEqual(loss["points"], 10)
        rows = list(csv.DictReader(io.StringIO(self.pipe("metrics", "--csv").out)))
        self.assertEqual([row["attempt"] for row in rows], ["1"] * 3 + ["2"] * 7)
        report = json.loads(self.pipe("report", "latest", "--output", "json").out)["metrics"][0]
        self.assertEqual((len(report["curve"]), report["restarts"]), (10, [[3, 2]]))

    def test_an_attempt_that_begins_anew_replaces_the_curve(self):
        self.pipeline({"train": {"command": """for i in 0 1 2; do echo "@pipe {\\"metric\\": \\"loss\\", \\"value\\": $i, \\"step\\": $i}"; done; test -e ${checkpoint}/x || { touch ${checkpoint}/x; exit 1; }""",
                                 "retry": {"max_retries": 1}}})
        self.run_pipe()
        loss, = json.loads(self.pipe("metrics", "--output", "json").out)["metrics"]
        self.assertEqual([(point["training_step"], point["attempt"]) for point in loss["series"]], [(0, 2), (1, 2), (2, 2)])

    def sweep(self, *words):
        """Runs a matrix of four steps and an evaluation of them, and returns the run's identifier."""
        report = """echo "@pipe {\\"metric\\": \\"accuracy\\", \\"value\\": ${params.c}.${params.fold}}"; echo '@pipe {"metric": "epochs", "value": 3}'; echo > ${outputs.model}"""
        self.pipeline({"train": {"matrix": {"c": [1, 2], "fold": [5, 7]}, "command": report, "outputs": ["model"], "parameters": {"kernel": "rbf"}},
                       "evaluate": {"command": """echo "@pipe {\\"metric\\": \\"f1\\", \\"value\\": ${params.bias}}" """, "inputs": {"models": "train[*].model"}}}, parameters={"bias": 0.25})
        return self.run_pipe(*words).events("run_started")[0]["run"]

    def test_metrics_begin_with_the_results_and_a_matrix_is_one_table(self):
        self.sweep()
        text = self.pipe("metrics").out
        self.assertRegex(text.splitlines()[1], r"^evaluate\.f1 +0\.25")
        self.assertIn("train[*], 4 instances; in all: ", text)
        for equal in ("kernel = rbf", "epochs = 3"):
            self.assertIn(equal, text)
        heading = next(line for line in text.splitlines() if "accuracy" in line and "=" not in line)
        self.assertEqual(heading.split(), ["c", "fold", "accuracy"])

    def test_a_comparison_begins_with_the_results_and_folds_a_matrix(self):
        runs = [self.sweep(), self.sweep("-p", "bias=0.5")]
        text = self.pipe("compare", *runs).out
        self.assertRegex(text.splitlines()[1], r"^result +evaluate\.f1 +0\.25 +0\.5")
        self.assertNotIn("train.c-1", text)
        everything = self.pipe("compare", *runs, "--all").out
        self.assertIn("train.c-1.fold-5.accuracy", everything)
        rows = json.loads(self.pipe("compare", *runs, "--output", "json").out)["rows"]
        self.assertEqual([row["name"] for row in rows if row["result"]], ["evaluate.f1"])

    def test_a_metric_with_a_dot_in_its_name_is_not_an_instance(self):
        step = {"evaluate": {"command": "echo '@pipe {\"metric\": \"svc.f1\", \"value\": ${params.f1}}'"}}
        runs = []
        for f1 in (0.25, 0.5):
            self.pipeline(step, parameters={"f1": f1})
            runs.append(self.run_pipe().events("run_started")[0]["run"])
        self.assertRegex(self.pipe("compare", *runs).out.splitlines()[1], r"^result +evaluate\.svc\.f1 +0\.25 +0\.5")


if __name__ == "__main__":
    unittest.main()
