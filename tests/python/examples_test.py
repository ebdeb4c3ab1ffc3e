"""The example in Python runs, in containers and as processes; the blocks of code in the guides are valid pipelines."""

import json
import pathlib
import re
import shutil
import unittest

from python_support import ROOT, PythonTest

BLOCKS = [text for page in ("python.md", "coming-from-metaflow.md", "coming-from-zenml.md") for text in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)]


class Example(PythonTest):
    def test_digits_runs_and_is_reused(self):
        shutil.copy(ROOT / "examples/digits-python/digits.py", self.folder)
        for orchestrator in ("local", "docker"):
            self.orchestrator = orchestrator
            text = (self.folder / "digits.py").read_text()
            (self.folder / "digits.py").write_text(text.replace('docker={"parent_image"', f'docker={{"labels": {{"e2e": "{self.mark}"}}, "target_repository": "{self.repository}", "parent_image"'))
            with self.subTest(orchestrator):
                result = self.digits("run")
                self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
                self.assertGreater(self.json_of("evaluate.scores")["accuracy"], 0.95)
                picture = self.folder / f"{orchestrator}.png"
                self.digits("artifacts", "latest", "report.result", "--copy", picture)
                self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")
                metrics = json.loads(self.digits("metrics", "latest", "--output", "json").out)["metrics"]
                self.assertIn("accuracy", {each["name"] for each in metrics})
                self.assertEqual(set(self.digits("run").steps().values()), {"cached"})
                self.assertEqual(self.digits("run", "-p", "good=0.999").steps()["report"], "skipped")
        self.assert_nothing_left()


class Guide(PythonTest):
    def test_every_block_of_code_is_a_valid_pipeline(self):
        self.assertGreater(len(BLOCKS), 8)
        (self.folder / "data").mkdir()
        (self.folder / "data/train.csv").write_text("a,b\n1,2\n")
        (self.folder / "data/values.json").write_text("[0.1]")
        for number, block in enumerate(BLOCKS):
            with self.subTest(block.splitlines()[0] + " ... " + block.splitlines()[-1]):
                self.write(f"block{number}.py", PREAMBLE + re.sub(r"\b(\w+)\.main\(\)", r"\1.check()", block).replace('if __name__ == "__main__":', "if True:") + CHECK)
                self.assertIn("checked", self.python_run(f"block{number}.py").out)

    def test_pipelines_of_the_page_about_zenml_run(self):
        quickstart, wine = (next(block for block in BLOCKS if f"{name}.main()" in block) for name in ("quickstart", "wine"))
        self.write("digits.py", PREAMBLE + quickstart)
        steps = self.digits("run").steps()
        self.assertEqual(set(steps.values()), {"succeeded"}, steps)
        self.assertEqual(len(self.json_of("predict.result")), 50)
        self.assertEqual(self.digits("run", "-p", "min_accuracy=0.9999").steps()["predict"], "skipped")
        self.write("digits.py", PREAMBLE + wine)
        steps = self.digits("run").steps()
        self.assertEqual((steps["promote"], steps["notify"], steps["notify-failure"]), ("succeeded", "succeeded", "skipped"))
        self.assertEqual(self.digits("run").steps()["promote"], "skipped", "production has the same model")
        self.write("digits.py", PREAMBLE + wine.replace("wine.main()", "predictions.main()"))
        self.assertEqual(self.digits("run").steps()["predict"], "succeeded")
        self.assertEqual(self.digits("run", "-p", "shift=3.0").steps()["predict"], "skipped")


PREAMBLE = '''from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
import pipe_ml as pl
if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC
'''
CHECK = '''
for each in list(globals().values()):
    if isinstance(each, pl.Pipeline):
        each.check()
print("checked")
'''


if __name__ == "__main__":
    unittest.main()
