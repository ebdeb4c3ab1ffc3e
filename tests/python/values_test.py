"""Values of many types go through files and come back equal; those that would not are refused."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import typing
import unittest
import uuid
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, NewType, Optional, Tuple, TypedDict, Union

from python_support import ROOT, PythonTest

sys.path.insert(0, str(ROOT / "python"))

from pipe_ml import Codec, Pickle, StepError, codec  # noqa: E402
from pipe_ml.pipe_values import codec_of, extension_of, load, save  # noqa: E402


class Colour(enum.Enum):
    red = 1
    green = "g"


class Rights(enum.Flag):
    read = 1
    write = 2
    both = 3
    run = 4


class Pair(NamedTuple):
    left: int
    right: "Optional[Pair]" = None


class Options(TypedDict, total=False):
    rate: float
    names: List[str]


@dataclasses.dataclass
class Model:
    weights: List[float]
    names: Dict[str, int] = dataclasses.field(default_factory=dict)
    inner: "Optional[Model]" = None


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclasses.dataclass
class Bundle:
    text: str
    blob: bytes
    model: Model


class Tree:
    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self.text == other.text


@codec(Tree, ".tree")
class TreeCodec:
    @staticmethod
    def save(tree, path):
        pathlib.Path(path).write_text(tree.text)

    @staticmethod
    def load(path):
        return Tree(pathlib.Path(path).read_text())


class Sub(Model):
    pass


Seconds = NewType("Seconds", float)

TABLE = [
    (int, 0), (int, 10**30), (float, 0.1), (float, 3), (float, math.inf), (float, math.nan), (bool, True), (str, ""), (str, "ä\n\"\\ \u2028 \U0001f600 \x00 \ud800"), (None, None),
    (Optional[int], None), (Optional[int], 5), (Union[int, str], "5"), (Union[bool, int], True), (Union[int, float], 2.0), (Literal["a", 1], 1), (Colour, Colour.green),
    (Rights, Rights.read), (Rights, Rights.both), (Rights, Rights.write | Rights.run), (Rights, Rights(0)), (Dict[Rights, int], {Rights.read | Rights.run: 1}),
    (list, [1, "a", None, [True, {"b": 2.5}]]), (dict, {"a": [1], "": {}}), (Any, {"x": [None]}), (List[int], []), (List[List[float]], [[1.0], []]),
    (Tuple[int, str], (1, "a")), (Tuple[int, ...], (1, 2, 3)), (Tuple[()], ()), (typing.Set[str], {"b", "a"}), (typing.FrozenSet[int], frozenset({3, 1})),
    (Dict[str, float], {"a": 1.0}), (Dict[int, str], {1: "a", -2: "b"}), (Dict[str, Any], {"a": 1}), (Dict[Tuple[int, int], bool], {(1, 2): True}),
    (Dict[Colour, int], {Colour.red: 1}), (Model, Model([1.0, 0.5], {"a": 1}, Model([]))), (Point, Point(1, 2)), (Dict[Point, int], {Point(1, 2): 3}), (Pair, Pair(1, Pair(2))),
    (Options, {"rate": 1.0}), (List[Model], [Model([1.0])]), (datetime.date, datetime.date(2026, 2, 28)),
    (datetime.datetime, datetime.datetime(2026, 2, 28, 1, 2, 3, 4, datetime.timezone.utc)), (decimal.Decimal, decimal.Decimal("0.10")), (uuid.UUID, uuid.UUID(int=5)),
    (Seconds, 1.5), (Annotated[int, "count"], 5), (bytes, b"\x00\xff"), (Tree, Tree("leaf")), (List[Tree], [Tree("a"), Tree("b")]), (Dict[str, bytes], {"a": b"1", "b-c": b""}),
    (Bundle, Bundle("t", b"b", Model([2.0]))), (Pickle[complex], 1 + 2j), (Annotated[set, Codec("pickle")], {1, (2, 3)}),
]

LOOP: list = []
LOOP.append(LOOP)
HOSTILE = [
    (datetime.timedelta, datetime.timedelta(1), "annotate float, and return its total_seconds()"),
    (object, 1, "annotate Any, or the exact type"),
    (dict, {"a": (1, 2)}, "such as dict[str, tuple]"),
    (Any, math.nan, "such as float"),
    (int, 1.0, "should be int, and is a float: 1.0"), (int, True, "should be int, and is a bool: True"), (str, b"a", "should be str, and is a bytes"),
    (float, "1", "should be float, and is a str: '1'"), (list, (1, 2), "should be list, and is a tuple"), (list, [1, (2, 3)], "[1] is a tuple, which would not come back as it is"),
    (dict, {1: 2}, "is a dict with keys that are not texts"), (list, [math.nan], "[0] is a float that is not finite"), (list, [{1}], "[0] is a set"),
    (Any, datetime.date(2026, 1, 1), "is a date, which would not come back"), (Any, Model([]), "is a Model, which would not come back"),
    (List[int], [1, "a"], "[1] should be int, and is a str: 'a'"), (Dict[str, int], {"a": {"b": 1}}, "['a'] should be int, and is a dict"),
    (Tuple[int, str], (1,), "should be Tuple[int, str], and is a tuple: (1,)"), (Literal["a"], "b", "should be Literal['a']"), (Colour, 1, "should be Colour, and is an int: 1"), (Rights, 3, "should be Rights, and is an int: 3"),
    (Model, {"weights": []}, "should be Model, and is a dict"), (Model, Sub([]), "is a Sub, and only the fields of Model would be stored: annotate it as Sub"),
    (Model, Model(["x"]), ".weights[0] should be float, and is a str: 'x'"), (Options, {"rates": 1}, "has 'rates', which Options lacks"),
    (list, LOOP, "is nested too deeply, or contains itself"), (Optional[int], "x", "should be Optional[int]"), (collections.OrderedDict, collections.OrderedDict(), "no file format"),
    (fractions.Fraction, fractions.Fraction(1, 3), "there is no file format for fractions.Fraction: make it a dataclass"), (complex, 1j, "no file format for complex"),
    (Dict[str, bytes], {"../x": b""}, "'../x' cannot name a file of the result's folder"), (bytes, "text", "the value is a str, not bytes"),
    (typing.Callable[[int], int], abs, "no file format"), (Optional[bytes], b"", "has no file format: only a type by itself"),
]


class Plain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def store(self, annotation, value, number=0):
        used = codec_of(annotation)
        path = self.folder / f"{number}{extension_of(used, annotation)}"
        save(value, str(path), used, annotation)
        return path, used

    def test_values_that_would_be_loaded_as_others_are_refused(self):
        self.assertGreater(len(HOSTILE), 25)
        for number, (annotation, value, message) in enumerate(HOSTILE):
            with self.subTest(annotation=annotation, value=repr(value)[:80]), self.assertRaises(StepError) as raised:
                self.store(annotation, value, number)
            self.assertIn(message, str(raised.exception))

    def test_files_of_other_programs_that_do_not_fit_the_type_are_refused(self):
        for annotation, text, message in [(int, "1.0", "should be int"), (Model, '{"weight": []}', "has 'weight', which Model lacks"), (Model, "{}", "missing 1 required"),
                                          (List[int], '{"a": 1}', "should be List[int]"), (Colour, '"blue"', "should be Colour"), (Rights, '"read|fly"', "should be Rights"), (int, "1 2", "is not JSON"),
                                          (Dict[int, int], '{"a": 1}', "a key of the value should be int"), (datetime.date, '"today"', "should be date")]:
            with self.subTest(text), self.assertRaises(StepError) as raised:
                (self.folder / "x.json").write_text(text)
                load(str(self.folder / "x.json"), "json", annotation)
            self.assertIn(message, str(raised.exception))

    def test_each_value_of_a_table_is_loaded_as_it_was_saved(self):
        self.assertGreater(len(TABLE), 40)
        for number, (annotation, value) in enumerate(TABLE):
            with self.subTest(annotation=annotation, value=repr(value)[:80]):
                path, used = self.store(annotation, value, number)
                back = load(str(path), used, annotation)
                if isinstance(value, float) and math.isnan(value):
                    self.assertTrue(math.isnan(back))
                else:
                    self.assertEqual(back, value)
                    self.assertIs(type(back), float if annotation is float else type(value))
                if path.suffix == ".json":
                    json.loads(path.read_text(), parse_constant=self.fail)


PACKAGES = """
    from __future__ import annotations
    from typing import TYPE_CHECKING, Annotated
    import pipe_ml as pl

    if TYPE_CHECKING:  # this machine's Python has none of these packages
        import numpy as np
        import pandas as pd
        from matplotlib.figure import Figure
        from sklearn.linear_model import LogisticRegression

    @pl.step
    def arrays() -> dict[str, np.ndarray]:
        import numpy as np
        return {"x": np.arange(6.0).reshape(2, 3).T, "y": np.array(["a", "bc"])}

    @pl.step
    def large() -> np.ndarray:
        import numpy as np
        return np.ones((1 << 18, 2), dtype="float32")

    @pl.step
    def frame(data: dict[str, np.ndarray]) -> tuple[Annotated[pd.DataFrame, "train"], Annotated[pd.Series, "labels"]]:
        import pandas as pd
        made = pd.DataFrame(data["x"], columns=["a", "b"], index=["p", "q", "r"])
        made["when"] = pd.Timestamp("2026-01-01", tz="UTC")
        made["kind"] = pd.Categorical(["u", "v", "u"])
        return made, made["a"]

    @pl.step
    def fit(train: pd.DataFrame, labels: pd.Series, c: float = 1.0) -> LogisticRegression:
        from sklearn.linear_model import LogisticRegression
        return LogisticRegression(C=c).fit(train[["a", "b"]], labels > 1)

    @pl.step
    def draw(labels: pd.Series) -> tuple[Annotated[Figure, "plot"], Annotated[Figure, pl.Codec("svg"), "vector"]]:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots()
        axes.plot(labels.values)
        return figure, figure

    @pl.step
    def check(data: dict[str, np.ndarray], train: pd.DataFrame, labels: pd.Series, model: LogisticRegression, large: np.ndarray) -> dict[str, float]:
        import numpy as np, pandas as pd
        assert data["x"].flags.f_contiguous and data["x"].tolist() == [[0, 3], [1, 4], [2, 5]] and data["y"].tolist() == ["a", "bc"]
        assert list(train.index) == ["p", "q", "r"] and str(train["when"].dtype).endswith("UTC]") and train["kind"].dtype == "category", train.dtypes
        assert isinstance(labels, pd.Series) and labels.name == "a" and labels.tolist() == [0, 1, 2]
        assert isinstance(large, np.memmap) and large.sum() == 1 << 19
        large[0] = 5  # in this process alone
        import os, pipe_values, sys
        opened = []
        sys.addaudithook(lambda event, told: opened.append(str(told[0])) if event == "open" else None)
        again = pipe_values.load(os.environ["PIPE_INPUT_TRAIN"], "pandas", None)
        assert again.equals(train) and not [each for each in opened if "arquet" in each or "train" in each], "a Python file that threads of pyarrow hold may abort the process at its end"
        return {"C": model.C, "features": model.n_features_in_}

    @pl.step
    def objects() -> np.ndarray:
        import numpy as np
        return np.array([object()])

    @pl.pipeline(docker={"requirements": ["numpy", "pandas==2.3.3", "pyarrow", "scikit-learn", "matplotlib"]})
    def digits():
        data = arrays()
        train, labels = frame(data)
        draw(labels)
        check(data, train, labels, fit(train, labels, 0.5), large())
        objects()

    if __name__ == "__main__":
        digits.main()
"""

MORE_PACKAGES = """
    from __future__ import annotations
    from typing import TYPE_CHECKING
    import pipe_ml as pl

    if TYPE_CHECKING:
        import polars
        import pyarrow
        from sklearn.pipeline import Pipeline

    @pl.step
    def frame() -> polars.DataFrame:
        import datetime, polars
        return polars.DataFrame({"a": [1.5, None], "when": [datetime.date(2026, 1, 2)] * 2, "kind": polars.Series(["u", "v"], dtype=polars.Categorical), "many": [[1], [2, 3]]})

    @pl.step
    def table(frame: pyarrow.Table) -> pyarrow.Table:
        return frame.append_column("b", [[True, False]])

    @pl.step
    def fit(frame: polars.DataFrame) -> Pipeline:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        return make_pipeline(StandardScaler(), LogisticRegression(C=0.5)).fit([[0.0], [1.0]], [0, 1])

    @pl.step
    def check(frame: polars.DataFrame, table: polars.DataFrame, model: Pipeline) -> dict[str, float]:
        import datetime, polars
        assert [str(each) for each in frame.dtypes] == ["Float64", "Date", "Categorical", "List(Int64)"], frame.dtypes
        assert frame.rows()[1] == (None, datetime.date(2026, 1, 2), "v", [2, 3]), frame.rows()
        assert table["b"].to_list() == [True, False]
        return {"C": model[-1].C, "prediction": int(model.predict([[1.0]])[0])}

    def twice(x):
        return 2 * x

    @pl.step
    def unsafe() -> Pipeline:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer
        return make_pipeline(FunctionTransformer(twice)).fit([[0.0]])

    @pl.step
    def refuse(model: Pipeline) -> None:
        pass

    @pl.pipeline(docker={"requirements": ["polars", "pyarrow", "scikit-learn", "skops"]})
    def digits():
        data = frame()
        check(data, table(data), fit(data))
        refuse(unsafe())

    if __name__ == "__main__":
        digits.main()
"""
TORCH = """
    from __future__ import annotations
    from pathlib import Path
    from typing import TYPE_CHECKING
    import pipe_ml as pl

    if TYPE_CHECKING:
        import torch

    @pl.step
    def make() -> dict[str, torch.Tensor]:
        import torch
        kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
        made = {str(kind).split(".")[1]: torch.arange(6).reshape(2, 3).T.to(kind) for kind in kinds}
        return {**made, "empty": torch.empty(0, 3), "scalar": torch.tensor(2.5), "grown": torch.ones(3, requires_grad=True)}

    @pl.step
    def one() -> torch.Tensor:
        import torch
        return torch.arange(1 << 20)

    @pl.step
    def check(file: Path, tensors: dict[str, torch.Tensor], one: torch.Tensor) -> int:
        import torch
        from safetensors.torch import load_file, save_file
        theirs = load_file(file)
        assert theirs.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert tensor.dtype == theirs[name].dtype and tensor.shape == theirs[name].shape and torch.equal(tensor, theirs[name]), name
        assert tensors["bool"].tolist()[0] == [False, True] and torch.equal(one, torch.arange(1 << 20))
        one[0] = 7  # in this process alone
        return len(tensors)

    @pl.step
    def theirs() -> Path:
        import torch
        from safetensors.torch import save_file
        save_file({"a": torch.ones(3, dtype=torch.int8), "b": torch.zeros(2, 2, dtype=torch.float64)}, "x.safetensors", metadata={"format": "pt"})
        return Path("x.safetensors")

    @pl.step
    def read(tensors: dict[str, torch.Tensor]) -> dict[str, list]:
        return {name: tensor.tolist() for name, tensor in sorted(tensors.items())}

    @pl.pipeline(OPTIONS)
    def digits():
        made = make()
        check(made, made, one())
        read(theirs())

    if __name__ == "__main__":
        digits.main()
"""


class Packages(PythonTest):
    def test_arrays_frames_models_and_figures_are_stored(self):
        self.program(PACKAGES)
        result = self.digits("run", code=1)
        self.assertEqual({step for step, status in result.steps().items() if status != "succeeded"}, {"objects"}, result)
        self.assertIn("an array of Python objects (dtype object) has no file format but pickle", result.failure("objects")["message"])
        self.assertIn("while storing its result 'result'", result.failure("objects")["message"])
        self.assertEqual(self.json_of("check.result"), {"C": 0.5, "features": 2.0})
        files = {each["output"]: each["file_name"] for each in json.loads(self.digits("artifacts", "latest", "--output", "json").out)["artifacts"]}
        self.assertEqual(files, {"arrays.result": "result.npz", "check.result": "result.json", "draw.plot": "plot.png", "draw.vector": "vector.svg", "fit.result": "result.joblib",
                                 "frame.labels": "labels.parquet", "frame.train": "train.parquet", "large.result": "result.npy"})

    def test_values_of_polars_arrow_and_skops_are_stored(self):
        self.program(MORE_PACKAGES)
        result = self.digits("run", code=1)
        self.assertEqual({step for step, status in result.steps().items() if status != "succeeded"}, {"refuse"}, result)
        self.assertIn("raised ", result.failure("refuse")["message"])
        self.assertIn("while reading its argument 'model'", result.failure("refuse")["message"])
        self.assertEqual(self.json_of("check.result"), {"C": 0.5, "prediction": 1.0})
        files = {each["output"]: each["file_name"] for each in json.loads(self.digits("artifacts", "latest", "--output", "json").out)["artifacts"]}
        self.assertEqual(files, {"check.result": "result.json", "fit.result": "result.skops", "frame.result": "result.parquet", "table.result": "result.parquet", "unsafe.result": "result.skops"})

    def test_tensors_are_what_safetensors_reads_and_writes(self):
        found = subprocess.run(["/usr/bin/python3", "-c", "import torch, numpy"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.environ.get("PIPE_TEST_TORCH"):
            self.program(TORCH.replace("OPTIONS", 'docker={"requirements": ["torch", "numpy", "safetensors"]}'))
            self.digits("run")
        elif found.returncode == 0:  # Debian's python3-torch
            self.program(TORCH.replace("OPTIONS", ""))
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", self.folder / "venv"], check=True)
            subprocess.run([self.folder / "venv/bin/pip", "-q", "install", "safetensors==0.5.3"], check=True)
            self.digits("run", PATH=f"{self.folder}/venv/bin:{os.environ['PATH']}", PYENV_VERSION="")
        else:
            self.skipTest("torch and what it requires are gigabytes: PIPE_TEST_TORCH=1 downloads them, and Debian has python3-torch")
        self.assertEqual(self.json_of("check.result"), 13)
        self.assertEqual(self.json_of("read.result"), {"a": [1, 1, 1], "b": [[0.0, 0.0], [0.0, 0.0]]})


if __name__ == "__main__":
    unittest.main()
