"""Functions as steps: the document, the command line, the code of a step, and when it runs again."""

import unittest

from python_support import PARENT, PythonTest, docker

DIGITS = """
    from dataclasses import dataclass
    import pipe_ml as pl

    FACTOR = 2

    @dataclass
    class Model:
        weights: list[float]
        c: float

    def scaled(x):
        return x * FACTOR

    @pl.step
    def load(count: int = 4) -> list[float]:
        '''Makes numbers.'''
        print("loading", count)
        return [scaled(i) for i in range(count)]

    @pl.step
    def train(data: list[float], c: float = 1.0) -> Model:
        pl.metric("loss", c)
        return Model([c * x for x in data], c)

    @pl.step
    def choose(models: list[Model]) -> Model:
        return max(models, key=lambda model: model.c)

    @pl.pipeline(docker={settings})
    def digits(count: int = 5):
        models = train.map(load(count), c=[0.1, 1.0, 10.0])
        return choose(models)

    if __name__ == "__main__":
        digits.main()
"""


class Functions(PythonTest):
    def write_digits(self, settings=None, change=("", "")):
        text = DIGITS.replace("{settings}", repr(settings or {}))
        self.assertIn(change[0], text)
        self.program(text.replace(*change))

    def test_a_failing_step_is_reported_with_its_own_traceback(self):
        self.write_digits(change=("return Model([c * x for x in data], c)", "raise ValueError(f'no {c}')"))
        result = self.digits("run", code=1)
        failure = result.failure("train.c-0.1")
        self.assertEqual(failure["message"], "raised ValueError: no 0.1 (__pipe__/digits.train.py:12, in train)")
        self.assertIn("raise ValueError(f'no {c}')", "\n".join(failure["details"]))
        self.assertNotIn("pipe_step.py", result.text)

    def test_a_failure_in_what_the_code_calls_of_the_package_is_at_the_codes_line(self):
        for call, raised in [("pl.checkpoint()", "StepError: this step has no checkpoint folder: declare it with @step(checkpoint=True)"),
                             ("pl.metric('loss', 'low')", "ValueError: could not convert string to float: 'low'")]:
            with self.subTest(call):
                self.write_digits(change=('pl.metric("loss", c)', call))
                failure = self.digits("run", code=1).failure("train.c-0.1")
                self.assertEqual(failure["message"], f"raised {raised} (__pipe__/digits.train.py:11, in train)")

    def test_functions_run_as_processes_and_are_reused(self):
        self.write_digits()
        first = self.digits("run")
        self.assertEqual(first.steps(), dict.fromkeys(["load", "train.c-0.1", "train.c-1.0", "train.c-10.0", "choose"], "succeeded"))
        self.assertEqual(self.json_of("choose.result"), {"weights": [0.0, 20.0, 40.0, 60.0, 80.0], "c": 10.0})
        self.assertEqual(set(self.digits("run").steps().values()), {"cached"})
        self.assertEqual(self.digits("run", "-p", "count=2").steps()["load"], "succeeded")
        self.assertEqual(self.json_of("load.result"), [0.0, 2.0])
        self.assertIn("loss", self.digits("metrics", "latest").out)

    def test_functions_run_in_an_image_without_pipe_ml(self):
        self.orchestrator = "docker"
        self.write_digits({"parent_image": PARENT, "skip_build": True, "network": "none", "labels": {"e2e": self.mark}})
        self.assertEqual(self.digits("run").steps()["choose"], "succeeded")
        self.assertEqual(self.json_of("choose.result")["c"], 10.0)
        self.assertNotIn("pipe_ml", docker("run", "--rm", "--label", f"e2e={self.mark}", PARENT, "pip", "list"))
        self.assert_nothing_left()

    def test_the_exported_document_has_the_same_keys(self):
        self.write_digits()
        self.digits("run")
        self.write("other.yaml", self.digits("export").out)
        done = self.pipe("run", "other.yaml", "-o", "local", "--output", "json")
        self.assertEqual(set(done.steps().values()), {"cached"}, done)

    def test_only_steps_that_use_the_edited_code_run_again(self):
        self.write_digits()
        self.digits("run")
        runs = lambda: sorted(step for step, action in self.actions().items() if action == "run")  # noqa: E731
        train = ["train.c-0.1", "train.c-1.0", "train.c-10.0"]
        for change, expected in {
            ("max(models", "min(models"): ["choose"],
            ("x * FACTOR", "x + FACTOR"): ["load"],
            ("FACTOR = 2", "FACTOR = 3"): ["load"],
            ("import pipe_ml as pl", "import os\n    import pipe_ml as pl\n    UNUSED = 1"): [],
            ("pl.metric(\"loss\", c)", "pl.metric(\"cost\", c)"): train,
            ("count: int = 4", "count: int = 7"): ["load"],  # a default that the pipeline's parameter replaces is code all the same
            ("@pl.step\n    def choose", "@pl.step(timeout='1h', description='Chooses.')\n    def choose"): [],
        }.items():
            with self.subTest(change):
                self.write_digits(change=change)
                self.assertEqual(runs(), expected)

    def test_a_class_that_a_step_uses_is_part_of_its_code(self):
        self.write_digits()
        self.digits("run")
        self.write_digits(change=("c: float\n\n", "c: float\n        note: str = ''\n\n"))
        self.assertEqual(self.actions(), {"load": "reuse", **dict.fromkeys(["train.c-0.1", "train.c-1.0", "train.c-10.0", "choose"], "run")})

    def test_names_in_strings_and_of_local_variables_add_no_code(self):
        self.program("""
            from typing import Annotated, Literal
            import pipe_ml as pl

            data = 1
            TABLE = {}
            TABLE["a"] = 2
            TABLE.update(b=3)
            print("at the top", file=__import__("sys").stderr)

            class Tree(dict):
                pass

            @pl.step
            def train(kind: 'Literal["other", "x"]' = "x", tree: "Tree | None" = None) -> Annotated[str, "other"]:
                print("other", [x for x in (1, 2)])
                data = 5
                return kind + str(data) + str(TABLE["b"])

            @pl.step
            def other(load: int = data) -> int:
                return load

            @pl.step
            def load() -> int:
                return other(data)

            @pl.pipeline
            def digits():
                train(), other(), load()

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("export")
        code = {name: (self.folder / f"__pipe__/digits.{name}.py").read_text() for name in ("train", "other", "load")}
        self.assertNotIn("def other", code["train"])
        self.assertNotIn("data = 1", code["train"])
        self.assertNotIn("at the top", "".join(code.values()))
        self.assertIn('TABLE = {}\n\nTABLE["a"] = 2\n\nTABLE.update(b=3)\n\nclass Tree', code["train"])
        self.assertIn("data = 1", code["other"])
        self.assertNotIn("def load", code["other"])
        self.assertIn("def other(load: int = data) -> int:", code["load"])
        self.assertEqual(set(self.digits("run").steps().values()), {"succeeded"})

    def test_methods_that_fill_a_name_are_part_of_the_steps_that_use_it(self):
        self.program("""
            import pipe_ml as pl

            NAMES = ["a", "b"]
            NUMBERS = {}
            LABELS = []
            for i, name in enumerate(NAMES):
                LABELS.append(name.upper())
                NUMBERS.update({name: i})

            def last() -> str:
                return "z"

            if len(LABELS) == 2:
                LABELS.append("Y")
            LABELS.append(last())

            @pl.step
            def read() -> list:
                return [LABELS, NUMBERS]

            @pl.step
            def other() -> int:
                return 1

            @pl.pipeline
            def digits():
                read(), other()

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("run")
        self.assertEqual(self.json_of("read.result"), [["A", "B", "Y", "z"], {"a": 0, "b": 1}])
        self.assertNotIn("LABELS", (self.folder / "__pipe__/digits.other.py").read_text())

    def test_functions_that_decorators_put_into_a_container_are_part_of_the_steps_that_use_it(self):
        self.program("""
            import functools

            import pipe_ml as pl

            MODELS = []
            BY_NAME = {}
            memory = functools.lru_cache(None)

            def listed(function):
                MODELS.append(function)
                return function

            def named(name):
                def put(function):
                    BY_NAME[name] = function
                    return function
                return put

            @listed
            def linear():
                return "linear"

            @named("deep")
            @memory
            def network():
                return layers()

            @memory
            def apart():
                return 1

            def layers():
                return 3

            @pl.step
            def read() -> list:
                return [[each() for each in MODELS], {name: each() for name, each in BY_NAME.items()}]

            @pl.step
            def other() -> int:
                return apart()

            @pl.pipeline
            def digits():
                read(), other()

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("run")
        self.assertEqual(self.json_of("read.result"), [["linear"], {"deep": 3}])
        self.assertNotIn("def apart", (self.folder / "__pipe__/digits.read.py").read_text())
        for name in ("MODELS", "def network"):
            self.assertNotIn(name, (self.folder / "__pipe__/digits.other.py").read_text())

    def test_values_of_any_content_arrive_unchanged(self):
        values = ["${HOME} \" ' \n \t # : é \U0001f600 $${x} `id` $(id)", "- b", "null", "1e3", "01", "~", "", " x "]
        self.program(f"""
            import pipe_ml as pl

            @pl.step
            def same(text: str, items: list[str], by_name: dict[str, str], large: int = 2**70) -> list:
                return [text, items, by_name, large]

            @pl.pipeline
            def digits(p: str = {values[0]!r}):
                for text in {values!r}:
                    same(text, {values!r}, {{text: text for text in {values!r}}})
                same(p, [p_ for p_ in ["x"]], {{}})

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("run")
        for i, text in enumerate(values):
            self.assertEqual(self.json_of(f"same{f'_{i + 1}' if i else ''}.result"), [text, values, {each: each for each in values}, 2**70])
        self.assertEqual(self.json_of(f"same_{len(values) + 1}.result"), [values[0], ["x"], {}, 2**70])

    def test_annotations_in_quotes_or_with_imports_for_checkers_are_read(self):
        self.write("kinds/__init__.py", "")
        self.write("kinds/of.py", "import dataclasses\n\n@dataclasses.dataclass\nclass Model:\n    weight: float\n")
        self.write("kinds/steps.py", """from typing import TYPE_CHECKING, Annotated, Dict, List
import pipe_ml as pl
if TYPE_CHECKING:
    from .of import Model
    import nowhere as no

@pl.step
def train() -> "Annotated[List['Model'], 'models']":
    from .of import Model
    return [Model(1.0)]

@pl.step
def each(models: 'List["Model"]', array: "Dict[str, 'no.ndarray']") -> int:
    return 1

@pl.step
def count(models: List["Model"]) -> Dict[str, "Model"]:
    return {model.__class__.__name__: model for model in models}
""")
        self.program("""
            import pipe_ml as pl
            from kinds.steps import train, count

            @pl.pipeline
            def digits():
                count(train())

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("run")
        self.assertEqual(self.json_of("count.result"), {"Model": {"weight": 1.0}})

    def test_tracebacks_have_only_the_users_frames(self):
        self.program("""
            from pipe_ml import *

            @step
            def train(count: int = 1) -> int:
                metric("x", 1)
                raise ValueError("no")

            @pipeline
            def digits():
                train()

            @pipeline
            def wrong():
                int("x")

            digits.export()
            wrong.export()
        """, "pipe_demo.py")  # its code is beside the files that travel with it, whose frames are left out
        said = self.python_run("pipe_demo.py", code=1).err
        self.assertIn("ValueError", said)
        self.assertNotIn("pipe_ml/", said)
        said = self.python_run("__pipe__/pipe_step.py", "__pipe__/pipe_demo.train.py", "count=json", "->", "result:json", code=1, PIPE_PARAM_COUNT="1").err
        self.assertIn('File "__pipe__/pipe_demo.train.py", line 6, in train', said)
        self.assertNotIn("pipe_step.py", said)

    def test_modules_of_the_project_are_copied_and_are_part_of_the_code(self):
        self.write("helpers/__init__.py", "")
        self.write("helpers/sums.py", "from .deep import times\ndef total(values): return times(sum(values))\n")
        self.write("helpers/deep.py", "def times(x): return 3 * x\n")
        self.program("""
            import pipe_ml as pl
            from helpers.sums import total

            @pl.step
            def add(values: list[int]) -> int:
                return total(values)

            @pl.pipeline
            def digits():
                add([1, 2])

            if __name__ == "__main__":
                digits.main()
        """)
        self.digits("run")
        self.assertEqual(self.json_of("add.result"), 9)
        self.assertEqual(self.actions(), {"add": "reuse"})
        self.write("helpers/deep.py", "def times(x): return 4 * x\n")
        self.assertEqual(self.actions(), {"add": "run"})

    def test_a_step_that_is_called_outside_of_a_pipeline_is_its_function(self):
        self.write_digits()
        self.program("from digits import load, train\nassert train(load(2), c=3.0).weights == [0.0, 6.0]\nprint('plain')", "call.py")
        self.assertIn("plain", self.python_run("call.py").out)

    def test_a_file_of_the_users_is_not_overwritten(self):
        self.write_digits()
        self.write("digits.yaml", "name: mine\n")
        result = self.digits("run", code=2)
        self.assertIn("digits.py:29: error: digits.yaml is there, and was not made by this pipeline", result.err)
        self.assertEqual((self.folder / "digits.yaml").read_text(), "name: mine\n")


if __name__ == "__main__":
    unittest.main()
