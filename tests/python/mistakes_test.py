"""Mistakes in pipelines of Python: each message is a golden file, and names the user's line. PIPE_ACCEPT=1 accepts new ones."""

import os
import textwrap
import unittest

from python_support import ROOT, PythonTest

GOLDEN = ROOT / "tests/golden/python"
HEAD = """
from dataclasses import dataclass
import pipe_ml as pl

@dataclass
class Model:
    weights: list[float]

@pl.step
def load(count: int = 3) -> list[float]:
    return [1.0] * count

@pl.step
def train(data: list[float], rate: float = 0.1) -> Model:
    return Model(data)

@pl.step
def score(model: Model) -> float:
    return 1.0
"""
TAIL = """
if __name__ == "__main__":
    mistake.main()
"""


def in_pipeline(*lines, before="", parameters=""):
    return f"{HEAD}{before}\n@pl.pipeline\ndef mistake({parameters}):\n" + "".join(f"    {line}\n" for line in lines) + TAIL


def with_step(step, call="step()"):
    return in_pipeline(call, before="\n" + textwrap.dedent(step).strip() + "\n")


MISTAKES = {
    "unknown_setting": with_step("""
        @pl.step(
            docker={"parent_image": "python:3.11-slim-bookworm",
                    "requirments": ["numpy"]})
        def step() -> int:
            return 1
    """),
    "unknown_option": with_step("@pl.step(memroy='1GiB')\ndef step() -> int:\n    return 1"),
    "unknown_nested_setting": with_step("@pl.step(settings={'docker': {'build_config': {'build_options': {'pul': True}}}})\ndef step() -> int:\n    return 1"),
    "wrong_value": with_step("@pl.step(timeout='3parsecs',\n         memory='lots')\ndef step() -> int:\n    return 1"),
    "wrong_value_in_with_options": in_pipeline("load.with_options(retry={'max_retries': -1})()"),
    "types_do_not_fit": in_pipeline("score(load())"),
    "parameter_does_not_fit": in_pipeline("load('three')"),
    "pipeline_parameter_does_not_fit": in_pipeline("load(count)", parameters="count: str = 'three'"),
    "missing_argument": in_pipeline("train()"),
    "unknown_argument": in_pipeline("train(load(), rat=0.5)"),
    "too_many_arguments": in_pipeline("load(1, 2)"),
    "no_annotation_of_the_result": with_step("@pl.step\ndef step():\n    return 1"),
    "annotation_that_nothing_defines": with_step("@pl.step\ndef step(rate: 'flaot' = 1.0) -> int:\n    return 1"),
    "no_file_format": with_step("@pl.step\ndef step() -> complex:\n    return 1j"),
    "class_without_a_file_format": with_step("class Tree:\n    pass\n\n@pl.step\ndef step(tree: Tree) -> int:\n    return 1", "step(load())"),
    "generator": with_step("@pl.step\ndef step() -> list[int]:\n    yield 1"),
    "name_that_pipe_ml_lacks": with_step("@pl.stpe\ndef step() -> int:\n    return 1"),
    "text_with_a_result": in_pipeline("step(f'data of {load()}')", before="@pl.step\ndef step(title: str) -> int:\n    return 1\n"),
    "results_in_a_list": in_pipeline("best([train(load()), train(load(4))])", before="@pl.step\ndef best(models: list[Model]) -> Model:\n    return models[0]\n"),
    "step_that_is_not_called": in_pipeline("train(load)"),
    "lambda": in_pipeline("square(1)", before="square = pl.step(lambda x: x * x)\n"),
    "closure": in_pipeline("add = adder(1)\n    add(2)", before="def adder(n):\n    @pl.step\n    def add(x: int) -> int:\n        return x + n\n    return add\n"),
    "method": in_pipeline("Trainer().fit()", before="class Trainer:\n    @pl.step\n    def fit(self) -> int:\n        return 1\n"),
    "unknown_name": with_step("@pl.step\ndef step() -> list:\n    return laod(3)"),
    "name_of_the_main_block": with_step("@pl.step\ndef step() -> int:\n    return LIMIT").replace('"__main__":\n', '"__main__":\n    LIMIT = 3\n'),
    "if_on_a_result": in_pipeline("if score(train(load())) > 0.9:\n        load()"),
    "loop_over_a_result": in_pipeline("for each in load():\n        train(each)"),
    "computing_with_a_result": in_pipeline("score(train(load(), rate=score(train(load())) * 2))"),
    "attribute_of_a_result": in_pipeline("train(train(load()).weight)"),
    "member_as_an_argument": in_pipeline("train(train(load()).weights)"),
    "mapped_to_a_single_argument": in_pipeline("score(train.map(load(), rate=[0.1, 0.2]))"),
    "map_without_a_list": in_pipeline("train.map(load())"),
    "two_unrelated_maps": in_pipeline("both.map(train.map(load(), rate=[1.0, 2.0]), train.map(load(), rate=[3.0]))",
                                      before="@pl.step\ndef both(a: Model, b: Model) -> float:\n    return 1.0\n"),
    "array_as_a_value": with_step("@pl.step\ndef step(blob: bytes) -> int:\n    return 1", "step(b'abc')"),
    "pipeline_parameter_without_default": in_pipeline("load(count)", parameters="count: int"),
    "empty_pipeline": in_pipeline("print('nothing')"),
    "unknown_output_of_a_command": in_pipeline("plot = pl.command('plot', 'draw ${outputs.picture}')\n    pl.command('show', 'see ${inputs.x}', {'x': plot.pictrue})"),
    "unknown_input_of_a_command": in_pipeline("pl.command('plot', ['draw', '${inputs.model}', '${outputs.picture}'])"),
    "missing_file": in_pipeline("step('data/train.csv')", before="from pathlib import Path\n@pl.step\ndef step(file: Path) -> int:\n    return 1\n"),
    "command_outside_of_a_pipeline": HEAD + "\npl.command('plot', 'draw')\n",
    "star_arguments": with_step("@pl.step\ndef step(*numbers: int) -> int:\n    return 1", "step(1, 2)"),
    "half_of_a_surrogate_pair": with_step("@pl.step\ndef step(text: str) -> int:\n    return 1", "step('\\ud800')"),
    "name_with_a_slash": in_pipeline("load()").replace("@pl.pipeline\n", "@pl.pipeline(\n    name='../other')\n"),
    "step_with_a_name_that_steps_cannot_have": in_pipeline("load.with_options(name='größe')()"),
    "several_at_once": in_pipeline("load.with_options(memory='lots')()", "train.with_options(uses={'license': 'two'})(load())"),
}


class Mistakes(PythonTest):
    def test_each_message_names_the_line_and_the_fix(self):
        self.assertGreater(len(MISTAKES), 30)
        for name, text in MISTAKES.items():
            with self.subTest(name):
                self.write("mistake.py", text.lstrip("\n"))
                result = self.python_run("mistake.py", "run", "-o", "local", code=None)
                self.assertIn(result.code, (1, 2), result)
                message = result.err.replace(str(self.folder), "FOLDER")
                self.assertNotIn("Traceback", message)
                file = GOLDEN / f"{name}.txt"
                if os.environ.get("PIPE_ACCEPT"):
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(message)
                self.assertEqual(message, file.read_text())
                self.assertRegex(message, r"^mistake\.py:\d+: error: ")


if __name__ == "__main__":
    unittest.main()
