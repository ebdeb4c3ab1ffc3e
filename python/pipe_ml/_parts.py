"""Parts of a pipeline that are not functions: commands, notebooks, conditions, rounds."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from ._errors import PipelineError, callers_place, did_you_mean
from ._handles import Artifact, Data, Mapped, Parameter, as_condition
from ._trace import Input, Node, Rounds, Taken, required

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CommandOptions

T = TypeVar("T")


class Outputs:
    """The outputs of a command by name: ``plot["picture"]`` or ``plot.picture``."""

    def __init__(self, node: Node, handles: Dict[str, Artifact]) -> None:
        self._node = node
        self._handles = handles

    @property
    def name(self) -> str:
        """The step's name, for the option ``after``."""
        return self._node.name

    def __getitem__(self, name: str) -> Any:
        if name not in self._handles:
            raise PipelineError(f"step '{self._node.name}' makes no output '{name}'", callers_place(), did_you_mean(name, self._handles),
                                [f"it makes {', '.join(self._handles) or 'none'}"])
        return self._handles[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


def command(name: str, command: Union[str, Sequence[Any]], inputs: Optional[Mapping[str, Any]] = None, outputs: Union[None, Sequence[str], Mapping[str, Any]] = None,
            parameters: Any = None, **options: Unpack[CommandOptions]) -> Outputs:
    """Adds a step that is a command: a list as it stands, a text by a shell. ``${outputs.NAME}`` in it declares an output."""
    node = _node("pl.command()", name, inputs, parameters, options)
    node.command = _filled(command)
    named = re.findall(r"\$\{outputs\.([A-Za-z0-9_-]+)\}", " ".join(map(str, [node.command] if isinstance(node.command, str) else node.command)))
    return _add(node, list(dict.fromkeys(named)) if outputs is None else outputs)


def notebook(name: str, file: Union[str, os.PathLike[str]], inputs: Optional[Mapping[str, Any]] = None, outputs: Union[Sequence[str], Mapping[str, Any]] = (), parameters: Any = None,
             **options: Unpack[CommandOptions]) -> Outputs:
    """Adds a step that executes a notebook: parameters and the paths of inputs and outputs are its variables; ``.notebook`` is the executed one."""
    node = _node("pl.notebook()", name, inputs, parameters, options)
    node.notebook = os.fspath(file)
    made = dict(outputs) if isinstance(outputs, Mapping) else {each: each for each in outputs}
    made.setdefault("notebook", os.path.basename(node.notebook))
    return _add(node, made)


def _node(what: str, name: str, inputs: Optional[Mapping[str, Any]], parameters: Any, options: Mapping[str, Any]) -> Node:
    from ._pipeline import STEP_ONLY, check_options

    place = callers_place()
    required(what)
    check_options(options, "StepSettings", [*STEP_ONLY], place)
    node = Node(name, place, options)
    if isinstance(parameters, Mapping):
        node.parameters = {key: None if isinstance(value, Parameter) and value._name == key else value for key, value in parameters.items()}
    else:
        node.parameters = parameters
    mapped = isinstance(options.get("matrix"), Mapped)
    for key, value in (inputs or {}).items():
        node.inputs.append(Input(key, _source(value, mapped), "path"))
    return node


def _add(node: Node, outputs: Union[Sequence[str], Mapping[str, Any]]) -> Outputs:
    node.outputs = dict(outputs) if isinstance(outputs, Mapping) else {each: each for each in outputs}
    required("a step").add(node)
    handles: Dict[str, Artifact] = {}
    from pathlib import Path

    for key in node.outputs:
        details = (node, node.name, key, Path, "path")
        handles[key] = Mapped(*details, root=node.name) if "matrix" in node.options else Artifact(*details)
    return Outputs(node, handles)


def _filled(words: Union[str, Sequence[Any]]) -> Union[str, List[Any]]:
    return words if isinstance(words, str) else [str(each) if isinstance(each, Parameter) else each for each in words]


def _source(value: Any, mapped: bool) -> Any:
    """Returns the source of a command's input as the document has it."""
    if isinstance(value, Taken):
        return value._source()
    if isinstance(value, Mapped):
        source = value.reference("[=]" if mapped else "[*]")
        return source if value._least is None else {"from": source, "at_least": value._least}
    if isinstance(value, Artifact):
        return value.reference()
    if isinstance(value, Outputs):
        raise PipelineError(f"step '{value.name}' makes several outputs", callers_place(), f"name one: {value.name}['{next(iter(value._handles), 'output')}']")
    return value.source if isinstance(value, Data) else value


class when:
    """``with pl.when(score > 0.9):`` the steps inside run if this holds, and are skipped otherwise."""

    def __init__(self, condition: Any) -> None:
        self._text = as_condition(condition).text

    def __enter__(self) -> None:
        required("pl.when()").conditions.append(self._text)

    def __exit__(self, *_: Any) -> None:
        required("pl.when()").conditions.pop()


def repeat(body: Callable[..., Any], first: T, *, max: int, until: Any = None) -> T:
    """Repeats the steps that ``body`` calls: it takes a result, and returns the one that the next round takes.

    With a pair, ``(result, done)``, the rounds end after one in which ``done`` is true; ``until`` may be an
    expression instead. At most ``max`` rounds are made. Returns the result of the last round.
    """
    place = callers_place()
    trace = required("pl.repeat()")
    if trace.rounds is not None:
        raise PipelineError("rounds cannot be inside of rounds", place)
    if not isinstance(first, Artifact):
        raise PipelineError("the first round takes the result of a step", place, "pl.repeat(body, start(), max=20)")
    rounds = trace.rounds = Rounds(first, max)
    try:
        made = body(Taken(rounds, first))
    finally:
        trace.rounds = None
    result, done = made if isinstance(made, tuple) and len(made) == 2 else (made, until)
    if not isinstance(result, Artifact) or result._node not in rounds.nodes:
        raise PipelineError("the body of pl.repeat() returns the result of a step that it calls, for the next round", place)
    rounds.result = result
    if done is not None:
        rounds.until = as_condition(done).text
    return result  # type: ignore[return-value]


def round_number() -> int:
    """Returns the number of the round, from 0, as an argument of a step that is repeated."""
    return Parameter("round", 0, int)  # type: ignore[return-value]


