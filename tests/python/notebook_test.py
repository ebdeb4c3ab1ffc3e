"""Notebooks: the functions of cells are steps, in a real kernel."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_support import PythonTest

CELLS = [
    "%precision 3\nimport pipe_ml as pl\nFACTOR = 2\n",
    "def scaled(x):\n    return FACTOR * x\n",
    "@pl.step\ndef load(count: int = 3) -> list[float]:\n    return [scaled(i) for i in range(count)]\n",
    "@pl.step\ndef total(values: list[float]) -> float:\n    raise ValueError('an older version')\n",
    "@pl.step\ndef total(values: list[float]) -> float:\n    return sum(values)\n",
    "@pl.pipeline\ndef digits(count: int = 3):\n    total(load(count))\n\nrun = digits.run(orchestrator='local')\nrun\n",
    "print('total', run['total'].output())\n",
    "digits\n",
    "FACTOR = 3\n",
    "run = digits.run(orchestrator='local')\nprint({name: step.status for name, step in run.steps.items()}, run['total'].output())\n",
    "@pl.step\ndef wrong(values: list) -> float:\n    return nothing\n",
    "@pl.pipeline\ndef bad():\n    wrong(load())\nbad.run(orchestrator='local')\n",
]
DRIVER = """
import json, sys
import nbformat
from nbclient import NotebookClient
cells = json.load(open("cells.json"))
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": "."}}).execute()
json.dump([cell.outputs for cell in notebook.cells], open("outputs.json", "w"))
"""


class Notebooks(PythonTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.kernel = pathlib.Path(folder.name, "bin/python")
        subprocess.run([sys.executable, "-m", "venv", folder.name], check=True)
        done = subprocess.run([cls.kernel, "-m", "pip", "-q", "install", "nbclient==0.10.2", "ipykernel==6.30.1"], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise unittest.SkipTest(f"no nbclient from the package index: {done.stderr.strip().splitlines()[-1]}")

    def test_cells_are_steps_and_their_results_are_shown(self):
        self.write("cells.json", json.dumps(CELLS))
        self.write("driver.py", DRIVER)
        self.python = str(self.kernel)
        self.python_run("driver.py", HOME=str(self.folder), PATH=f"{self.kernel.parent}:{os.environ['PATH']}")
        outputs = json.loads((self.folder / "outputs.json").read_text())
        texts = ["".join(str(part.get("text", "")) + json.dumps(part.get("data", "")) + "\n".join(part.get("traceback", [])) for part in each) for each in outputs]
        self.assertIn("succeeded", texts[5])
        self.assertIn("<table>", texts[5])
        self.assertIn("total 6.0", texts[6])
        self.assertIn("<svg", texts[7])
        self.assertIn("{'load': 'succeeded', 'total': 'succeeded'} 9.0", texts[9])
        self.assertIn("'wrong' uses 'nothing', which is not defined in its module", texts[11])
        self.assertNotIn("Traceback", texts[11])
        code = (self.folder / "__pipe__/notebook.total.py").read_text()
        self.assertIn("sum(values)", code)
        self.assertNotIn("older", code)


if __name__ == "__main__":
    unittest.main()
