"""Steps that are Jupyter notebooks. A notebook finds parameters, inputs and outputs as Python variables of their names, and runs again if its code changes."""

import json
import unittest

from support import PipeTest

REQUIREMENTS = ["nbclient==0.10.2", "ipykernel==6.30.1"]
PARAMETERS = "rate = 0.1\nname = 'none'\ncount = 1\nlayers = []\n"
TRAIN = """import helper, json, pathlib
print("training", repr(rate), repr(name), count, layers)
if rate < 0:
    raise ValueError("a rate is positive")
pathlib.Path(model).write_text(json.dumps({"rate": helper.times(rate), "lines": len(open(data).readlines())}))
"""


def cell(text, tags=(), **more):
    """Returns a code cell. `more` replaces members, such as the saved outputs."""
    return {"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {"tags": [*tags]}, "outputs": [], "execution_count": None, **more}


class Notebooks(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.write("helper.py", "def times(x): return 2 * x\n")
        self.write("data.csv", "1\n2\n")
        self.write_notebook()

    def write_notebook(self, train=TRAIN, text="# Title", **saved):
        """Writes a notebook: a title, a cell tagged `parameters`, a cell that trains, and an expression. `saved` has what an earlier execution left in the
        cell."""
        cells = [{"cell_type": "markdown", "source": [text], "metadata": {}}, cell(PARAMETERS, ["parameters"]), cell(train, **saved), cell("rate * 100")]
        kernel = {"name": "my-project", "language": "python", "display_name": "My project"}
        self.write("train.ipynb", json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}, "cells": cells}))

    def declare(self, **step):
        """Writes a pipeline with a step `train` that is the notebook. Unless `train` has a matrix, a step `show` prints the executed notebook."""
        train = {"notebook": "train.ipynb", "parameters": {"rate": 0.5, "name": "7", "layers": [8, 4]}, "inputs": {"data": "./data.csv"}, "outputs": {"model": "model.json"}, **step}
        show = {"command": ["cat", "${inputs.page}"], "inputs": {"page": "train.notebook"}}
        self.pipeline({"train": train, **({} if "matrix" in step else {"show": show})}, {"requirements": REQUIREMENTS, "network": "none"})

    def executed(self, step="train"):
        """Returns the sources and the outputs of the cells of the executed notebook."""
        cells = json.loads(self.artifact(f"{step}.notebook"))["cells"]
        return ["".join(cell["source"]) for cell in cells], [cell.get("outputs") for cell in cells]

    def test_values_arrive_by_name_and_the_executed_notebook_is_an_output(self):
        self.declare()
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"train": "succeeded", "show": "succeeded"}, result)
        self.assertIn("training 0.5 '7' 1 [8, 4]", [event["line"] for event in result.events("step_log")])
        self.assertEqual(json.loads(self.artifact("train.model")), {"rate": 1.0, "lines": 2})
        sources, outputs = self.executed()
        self.assertIn("rate = 0.5", sources[2])
        self.assertIn("name = '7'", sources[2])
        self.assertEqual("".join(outputs[3][0]["text"]), "training 0.5 '7' 1 [8, 4]\n")
        self.assertEqual("".join(outputs[4][0]["data"]["text/plain"]), "50.0")
        (shown,) = json.loads(self.pipe("report", "latest", "--output", "json").out)["pictures"]
        self.assertEqual(shown["name"], "train.notebook")
        self.assertEqual(shown["cells"][4], {"k": "code", "s": "rate * 100", "o": [{"t": "50.0"}]})

    def test_a_notebook_runs_in_a_container(self):
        self.orchestrator = "docker"
        self.declare()
        self.assertEqual(self.run_pipe().steps()["show"], "succeeded")
        self.assertEqual(json.loads(self.artifact("train.model")), {"rate": 1.0, "lines": 2})

    def test_each_instance_of_a_matrix_has_its_own_executed_notebook(self):
        self.declare(matrix={"count": [1, 2]})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"train.count-1": "succeeded", "train.count-2": "succeeded"}, result)
        self.assertIn("count = 2", self.executed("train.count-2")[0][2])

    def test_a_notebook_runs_again_only_if_code_or_values_have_changed(self):
        self.declare()
        self.run_pipe()

        def action() -> str:
            return self.plan()["train"]["action"]

        self.write_notebook(text="# Another title", outputs=[{"output_type": "stream", "name": "stdout", "text": ["old"]}], execution_count=7)
        self.assertEqual(action(), "reuse")
        self.write_notebook(TRAIN + "# more\n")
        self.assertEqual(action(), "run")
        self.write_notebook()
        self.assertEqual(action(), "reuse")
        self.write("helper.py", "def times(x): return 3 * x\n")
        self.assertEqual(action(), "run")
        self.write("helper.py", "def times(x): return 2 * x\n")
        self.declare(parameters={"rate": 0.25})
        self.assertEqual(action(), "run")

    def test_the_failure_names_the_cell_that_has_raised(self):
        self.declare(parameters={"rate": -1})
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("train")["message"], "raised ValueError: a rate is positive (train.ipynb, code cell 2)")
        self.assertIn("training -1 'none' 1 []", [event["line"] for event in result.events("step_log")])
        self.assertNotIn("\x1b", result.text)

    def test_the_failure_names_packages_that_are_missing(self):
        self.declare()
        file = self.folder / "pipeline.yaml"
        document = json.loads(file.read_text())
        del document["settings"]["docker"]["requirements"]
        file.write_text(json.dumps(document))
        self.assertIn("a notebook takes the packages nbclient and ipykernel", self.run_pipe(code=1).text)


if __name__ == "__main__":
    unittest.main()
