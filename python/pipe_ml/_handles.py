"""Handles in a pipeline's function: results that do not exist yet, parameters, conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, NoReturn, Optional, Sequence

from ._errors import PipelineError, callers_place, did_you_mean
from .pipe_records import fields_of
from .pipe_types import is_record, name_of, origin_of

if TYPE_CHECKING:
    from ._trace import Node


class Condition:
    """An expression that is evaluated during the run, not while the pipeline is declared."""

    def __init__(self, text: str, is_simple: bool = True) -> None:
        self.text = text
        self._is_simple = is_simple

    def _inner(self) -> str:
        return self.text if self._is_simple else f"({self.text})"

    def __and__(self, other: Any) -> Condition:
        return Condition(f"{self._inner()} and {as_condition(other)._inner()}", False)

    def __or__(self, other: Any) -> Condition:
        return Condition(f"{self._inner()} or {as_condition(other)._inner()}", False)

    def __invert__(self) -> Condition:
        return Condition(f"not {self._inner()}")

    def __bool__(self) -> NoReturn:
        raise PipelineError(f"'{self.text}' is known only when the run has come to it", callers_place(),
                            "write `with pl.when(...):` around the steps, and &, | and ~ in place of `and`, `or` and `not`")


class _Comparable:
    """A handle whose comparisons are conditions."""

    def expression(self) -> str:
        raise NotImplementedError

    def _described(self) -> str:
        raise NotImplementedError

    def _compare(self, sign: str, other: Any) -> Condition:
        return Condition(f"{self.expression()} {sign} {_operand(other)}", False)

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Condition:
        return self._compare(">=", other)

    def __and__(self, other: Any) -> Condition:
        return as_condition(self).__and__(other)

    def __or__(self, other: Any) -> Condition:
        return as_condition(self).__or__(other)

    def __invert__(self) -> Condition:
        return ~as_condition(self)

    __hash__ = object.__hash__

    def _refuse(self, doing: str) -> NoReturn:
        raise PipelineError(f"{self._described()} is known only in the run, so it cannot be {doing} while the pipeline is declared", callers_place(),
                            "do that in a step: pass it as an argument")

    def __bool__(self) -> NoReturn:
        raise PipelineError(f"{self._described()} is known only in the run, so it cannot decide while the pipeline is declared", callers_place(),
                            f"write `with pl.when({self._short()} > ...):` around the steps")

    def _short(self) -> str:
        return "result"

    def __add__(self, _: Any = None) -> NoReturn:
        self._refuse("computed with")

    def __format__(self, _: str) -> str:
        self._refuse("part of a text")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __neg__ = __float__ = __int__ = __add__

    def __len__(self) -> int:
        self._refuse("counted")

    def __iter__(self) -> Iterator[Any]:
        self._refuse("taken apart or looped over")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("called")


class Artifact(_Comparable):
    """The future result of a step: an argument of further steps, or a part of a condition."""

    def __init__(self, node: Optional[Node], step: str, output: str, annotation: Any, codec: str) -> None:
        self._node = node
        self._step = step
        self._output = output
        self._annotation = annotation
        self._codec = codec

    def reference(self, selector: str = "") -> str:
        return f"{self._step}{selector}.{self._output}"

    def expression(self) -> str:
        return "${" + self.reference() + "}"

    def _described(self) -> str:
        return f"the result '{self._output}' of step '{self._step}'"

    def _short(self) -> str:
        return self._step.replace("-", "_")

    def __getitem__(self, key: Any) -> Member:
        return Member(self, (key,))

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        kind = origin_of(self._annotation)[0]
        if is_record(kind) and name in fields_of(kind):
            return Member(self, (name,))
        hint = did_you_mean(name, fields_of(kind)) if is_record(kind) else "a method or attribute of it is for code in a step: pass it as an argument"
        raise PipelineError(f"{self._described()} is known only in the run, and has no '{name}' while the pipeline is declared", callers_place(), hint)

    def __repr__(self) -> str:
        return f"<{name_of(self._annotation)} of {self.reference()}>"


class Member(_Comparable):
    """A member of a step's JSON result, for conditions: ``metrics["accuracy"] > 0.9``."""

    def __init__(self, artifact: Artifact, path: Sequence[Any]) -> None:
        self._artifact = artifact
        self._path = tuple(path)

    def __getitem__(self, key: Any) -> Member:
        return Member(self._artifact, (*self._path, key))

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        return Member(self._artifact, (*self._path, name))

    def expression(self) -> str:
        return "${" + ".".join([self._artifact.reference(), *map(str, self._path)]) + "}"

    def _described(self) -> str:
        return f"'{'.'.join(map(str, self._path))}' of {self._artifact._described()}"


class Mapped(Artifact):
    """The results of a mapped step: ``.map()`` goes on one by one, a call takes all of them as a list."""

    def __init__(self, *details: Any, root: str = "", least: Optional[int] = None) -> None:
        super().__init__(*details)
        self._root = root  # the step whose matrix it has
        self._least = least

    def at_least(self, count: int) -> Mapped:
        """Returns the results of the instances that succeed, if there are enough; otherwise the step that takes the results fails."""
        return Mapped(self._node, self._step, self._output, self._annotation, self._codec, root=self._root, least=count)

    def _described(self) -> str:
        return f"the results '{self._output}' of the mapped step '{self._step}'"


class Parameter(_Comparable):
    """A parameter of the pipeline, which ``-p NAME=VALUE`` and ``run(NAME=VALUE)`` replace."""

    def __init__(self, name: str, default: Any, annotation: Any) -> None:
        self._name = name
        self._default = default
        self._annotation = annotation

    def expression(self) -> str:
        return "${params." + self._name + "}"

    def __str__(self) -> str:
        return self.expression()

    def __format__(self, _: str) -> str:
        return self.expression()

    def __getitem__(self, key: Any) -> str:
        return "${params." + self._name + "." + str(key) + "}"

    def _described(self) -> str:
        return f"the parameter '{self._name}'"

    def _short(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<parameter {self._name}>"


class Data:
    """A file, a folder or an address outside of the pipeline."""

    def __init__(self, source: Any) -> None:
        self.source = source


class Each:
    """Values of an axis: ``train.map(data, c=pl.each([0.1, 1, 10]))``."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values: List[Any] = list(values)


def each(values: Iterable[Any]) -> Any:
    """Marks a list, in ``map()``, as values of which each makes a step."""
    return Each(values)


def data(source: Any, sha256: str = "", version: str = "") -> Any:
    """Names a file or folder (``./corpus``) or an address (``https://``, ``s3://``) as an argument."""
    text = str(source)
    if "://" in text:
        details = {"url": text, **({"sha256": sha256} if sha256 else {}), **({"version": version} if version else {})}
        return Data(details if len(details) > 1 else text)
    return Data({"path": text})


def artifact(name: str, optional: bool = False) -> Any:
    """Names a published artifact, ``production`` or ``production@3``, as an argument."""
    return Data({"artifact": name, "optional": True} if optional else f"artifact:{name}")


def output(reference: str) -> Any:
    """Names an output by its reference, ``prep-clean.table``, such as one of an included file."""
    step, _, name = reference.rpartition(".")
    from pathlib import Path

    return Artifact(None, step, name, Path, "path")


def as_condition(value: Any) -> Condition:
    if isinstance(value, Condition):
        return value
    if isinstance(value, _Comparable):
        return Condition(value.expression())
    if isinstance(value, bool):
        return Condition("true" if value else "false")
    if isinstance(value, str):
        return Condition(value, False)
    raise PipelineError(f"{value!r} is not a condition", callers_place(), "compare a result, as in `pl.when(score > 0.9)`")


def _operand(value: Any) -> str:
    if isinstance(value, _Comparable):
        return value.expression()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str) and "'" not in value:
        return f"'{value}'"
    if isinstance(value, str) and '"' not in value:
        return f'"{value}"'
    raise PipelineError(f"a condition compares with numbers, texts and booleans, and this is {value!r}", callers_place())
