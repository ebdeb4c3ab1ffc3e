"""The example in Python runs, in containers and as processes; docs/python.md and what it shows hold."""

import json
import pathlib
import re
import shutil
import unittest

from python_support import ROOT, PythonTest

BLOCKS = [text for page in ("python.md", "coming-from-metaflow.md", "coming-from-zenml.md") for text in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)]


class Example(PythonTest):
    def test_digits(self):
        for name in ("digits.py",):
            shutil.copy(ROOT / "examples/digits-python" / name, self.folder)
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
    def test_every_block_of_code_is_a_pipeline_that_is_valid(self):
        self.assertGreater(len(BLOCKS), 8)
        (self.folder / "data").mkdir()
        (self.folder / "data/train.csv").write_text("a,b\n1,2\n")
        for number, block in enumerate(BLOCKS):
            with self.subTest(block.splitlines()[0] + " ... " + block.splitlines()[-1]):
                self.write(f"block{number}.py", PREAMBLE + re.sub(r"\b(\w+)\.main\(\)", r"\1.check()", block).replace('if __name__ == "__main__":', "if True:") + CHECK)
                self.assertIn("checked", self.python_run(f"block{number}.py").out)


PREAMBLE = '''from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
import pipe_ml as pl
if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch
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
