"""A pipeline while its function is executed: each call of a step becomes a node of the document."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _annotations
from ._errors import PipelineError, Place, callers_place, did_you_mean
from ._handles import Artifact, Data, Each, Mapped, Parameter, _Comparable, as_condition
from .pipe_types import MAX_DEPTH, StepError, a, form_of, name_of, to_plain
from .pipe_values import CODECS, FileName, Metrics, codec_of, extension_of

PARQUET = ("pandas", "polars", "arrow")


class Input(NamedTuple):
    """An argument that comes from a file."""

    name: str
    source: Any  # as the document has it
    codec: str
    is_gathered: bool = False


class Value(NamedTuple):
    """A parameter of a step; ``of_pipeline`` is the name of the pipeline's parameter that it is."""

    name: str
    value: Any
    codec: str
    of_pipeline: str = ""


class Axis(NamedTuple):
    """An argument of which each value makes an instance of the step."""

    name: str
    values: Any  # a list, or a text as "${split.files[*]}"
    codec: str
    is_input: bool = False


class Node:
    """A step of the pipeline."""

    def __init__(self, name: str, place: Place, options: Mapping[str, Any]) -> None:
        self.name = name
        self.place = place
        self.options = dict(options)
        self.declared: Optional[Place] = None  # the line of its decorator
        self.function: Optional[Callable[..., Any]] = None
        self.command: Union[None, str, Sequence[Any]] = None
        self.notebook = ""  # its path, in place of a command
        self.parameters: Any = None  # of a command or notebook, as in YAML
        self.inputs: List[Input] = []
        self.values: List[Value] = []
        self.axes: List[Axis] = []
        self.matrix: Any = None
        self.outputs: Dict[str, Any] = {}
        self.words: List[str] = []  # of a function's outputs, in the command
        self.repeat: Any = None  # the Rounds that the step is in


class Rounds:
    """Steps that are repeated."""

    def __init__(self, first: Any, max_rounds: int) -> None:
        self.first = first
        self.max = max_rounds
        self.until = ""
        self.nodes: List[Node] = []
        self.result: Any = None


class Trace:
    """The steps of a pipeline, in the order of their calls."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.options = options
        self.nodes: List[Node] = []
        self.names: Dict[str, Node] = {}
        self.parameters: Dict[str, Parameter] = {}
        self._counts: Dict[str, int] = {}
        self.conditions: List[str] = []
        self.rounds: Optional[Rounds] = None

    def add(self, node: Node) -> None:
        wanted = node.name
        while node.name in self.names:
            self._counts[wanted] = self._counts.get(wanted, 1) + 1
            node.name = f"{wanted}_{self._counts[wanted]}"
        if self.conditions:
            own = node.options.get("when")
            parts = [*self.conditions, *([as_condition(own).text] if own is not None else [])]
            node.options["when"] = parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)
        if self.rounds is not None:
            self.rounds.nodes.append(node)
            node.repeat = self.rounds
        self.names[node.name] = node
        self.nodes.append(node)


def requirements(options: Mapping[str, Any]) -> str:
    """Returns the Python requirements that the options of a step or pipeline name; a text, in which packages can be found."""
    docker: Dict[str, Any] = {}
    for part in (options.get("settings", {}).get("docker"), options.get("docker")):
        docker.update(part if isinstance(part, Mapping) else {})
    return str(docker.get("requirements") or "")


_current: List[Trace] = []


def current() -> Optional[Trace]:
    return _current[-1] if _current else None


def required(what: str) -> Trace:
    if trace := current():
        return trace
    raise PipelineError(f"{what} stands in the function of a pipeline", callers_place(), "call it in a function with @pl.pipeline above it")


class tracing:
    """Collects the steps that are called inside of it."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.trace = Trace(name, options)

    def __enter__(self) -> Trace:
        _current.append(self.trace)
        return self.trace

    def __exit__(self, *_: Any) -> None:
        _current.remove(self.trace)


def is_text(annotation: Any, value: Any) -> bool:
    """Returns whether a parameter is passed unchanged, because each of its values is a text."""
    form, origin, arguments = form_of(annotation)
    if form == "any":
        return isinstance(value, str)
    return origin is str or form in ("enum", "time", "text") or (form == "literal" and all(isinstance(each, str) for each in arguments))


def plain_value(value: Any, annotation: Any, at: str, place: Place) -> Any:
    """Returns a parameter's value as the document has it: a value that is not a text is written as JSON."""
    try:
        plain = to_plain(value, annotation, at)
        str(plain).encode()
    except StepError as error:
        hint = f"call it: {value.name}(...)" if hasattr(value, "with_options") else ""
        raise PipelineError(str(error), place, hint) from None
    except UnicodeEncodeError:
        raise PipelineError(f"{at} holds half of a surrogate pair, which no file of UTF-8 can hold", place) from None
    except ValueError:  # an int of more than 4300 digits
        raise PipelineError(f"{at} holds an int that has too many digits for a text", place) from None
    if is_text(annotation, value) or (isinstance(plain, (bool, int, float, list, dict)) and not has_large_int(plain)):
        return without_placeholders(plain)
    import json

    return without_placeholders(json.dumps(plain))


def has_large_int(value: Any) -> bool:
    """Returns whether a number in the value has more than 64 bits, the most that a document can hold."""
    if isinstance(value, (list, dict)):
        return any(map(has_large_int, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 64


def without_placeholders(value: Any) -> Any:
    """Returns a value whose texts mean what they say: `${x}` in a value is no placeholder."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [without_placeholders(part) for part in value]
    if isinstance(value, dict):
        return {key: without_placeholders(part) for key, part in value.items()}
    return value


_codecs: Dict[int, Tuple[Any, str]] = {}  # by the annotation's identity; the annotation is kept, so that no other takes its place


def codec_at(annotation: Any, what: str, place: Place) -> str:
    """Returns the name of the codec of a type; raises at the place for a type that has none."""
    known = _codecs.get(id(annotation))
    if known is not None:
        return known[1]
    try:
        codec = codec_of(annotation)
    except StepError as error:
        raise PipelineError(f"{what}: {error}", place) from None
    _codecs[id(annotation)] = annotation, codec
    return codec


def handle_in(value: Any, depth: int = 0) -> Optional[_Comparable]:
    """Returns a handle that the value is or holds; None where there is none."""
    if isinstance(value, _Comparable):
        return value
    if depth > MAX_DEPTH:  # a list that contains itself: to_plain() reports it
        return None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()
    return next((found for each in parts if (found := handle_in(each, depth + 1)) is not None), None)


class Call:
    """A call of a function step inside of a pipeline, argument by argument."""

    def __init__(self, node: Node, function: Callable[..., Any], is_map: bool) -> None:
        self.node = node
        self.function = function
        self.is_map = is_map
        self.hints = _annotations.annotations_of(function)
        node.function = function

    def bind(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        parameters = _annotations.parameters_of(self.function)
        for each in parameters:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                kind = "takes any number of arguments" if each.kind != each.POSITIONAL_ONLY else "has arguments without names"
                raise PipelineError(f"step '{self.node.name}' {kind} ('{each.name}'), and its results are found by their names", self.node.declared or self.node.place,
                                    "name each argument; a list takes many")
        names = [each.name for each in parameters]
        if len(arguments) > len([each for each in parameters if each.kind != each.KEYWORD_ONLY]):
            raise PipelineError(f"step '{self.node.name}' takes {len(names)} argument{'' if len(names) == 1 else 's'}, and is given {len(arguments) + len(named)}", self.node.place)
        given = dict(zip(names, arguments))
        for name, value in named.items():
            if name not in names:
                raise PipelineError(f"step '{self.node.name}' has no argument '{name}'", self.node.place, did_you_mean(name, names), [f"it has {', '.join(names) or 'none'}"])
            if name in given:
                raise PipelineError(f"the argument '{name}' of step '{self.node.name}' is given twice", self.node.place)
            given[name] = value
        for each in parameters:
            if each.name in given:
                self.argument(each.name, given[each.name])
            elif each.default is each.empty:
                raise PipelineError(f"step '{self.node.name}' is not given its argument '{each.name}'", self.node.place)
            elif self._is_plain_default(each):
                self.argument(each.name, each.default)
        self._check_variables()

    def _is_plain_default(self, parameter: Any) -> bool:
        """Returns whether a default is shown as a parameter of the step; others stay in the function's code."""
        annotation = self.hints.get(parameter.name)
        if isinstance(parameter.default, os.PathLike):
            return False
        try:
            if annotation is not None and codec_at(annotation, "", self.node.place) != "json":
                return False
            to_plain(parameter.default, annotation)
            return True
        except (StepError, PipelineError):
            return False

    def argument(self, name: str, value: Any) -> None:
        if isinstance(value, _Comparable) and not isinstance(value, (Artifact, Parameter)):
            raise PipelineError(f"the argument '{name}' of step '{self.node.name}' is {value._described()}, and a step takes a result as a whole", self.node.place,
                                "pass the result, and take its member in the step")
        if (inner := handle_in(value)) is not None and inner is not value:
            raise PipelineError(f"the argument '{name}' of step '{self.node.name}' is a {type(value).__name__} that holds {inner._described()}, and a step takes each result by itself",
                                self.node.place, "give each an argument of its own; results of one step by map() are taken together, by an argument that is a list")
        if isinstance(value, Artifact):
            self._artifact(name, value)
        elif isinstance(value, Parameter):
            self._parameter(name, value)
        elif isinstance(value, Data):
            self._input(name, value.source, self._codec(name) or "path")
        elif isinstance(value, Each) or (self.is_map and isinstance(value, (list, tuple, range, set)) and not _annotations.is_list(self.hints.get(name))):
            self._axis(name, list(value.values if isinstance(value, Each) else value))
        else:
            self._value(name, value)

    def _codec(self, name: str) -> str:
        annotation = self.hints.get(name)
        return codec_at(annotation, f"the argument '{name}' of step '{self.node.name}'", self.node.declared or self.node.place) if annotation is not None else ""

    def _input(self, name: str, source: Any, codec: str, is_gathered: bool = False) -> None:
        self.node.inputs.append(Input(name, source, codec, is_gathered))

    def _artifact(self, name: str, value: Artifact) -> None:
        if current() is None or (value._node is not None and value._node not in required("a step").nodes):
            raise PipelineError(f"{value._described()} belongs to another pipeline", self.node.place, "call the step in this pipeline's function")
        annotation, made = self.hints.get(name), value._annotation
        taken = f"the argument '{name}' of step '{self.node.name}'"
        if isinstance(value, Mapped) and not (self.is_map and not _annotations.is_list(annotation)):
            if annotation is not None and not _annotations.is_list(annotation):
                raise PipelineError(f"{taken} takes one {name_of(annotation)}, and is given {value._described()}", self.node.place,
                                    f"take all of them, `{name}: list[{name_of(annotation)}]`, or go on one by one with {self.node.name}.map(...)")
            codec = self._connect(value, made, _annotations.item_of(annotation), taken)
            source: Any = value.reference("[*]")
            self._input(name, source if value._least is None else {"from": source, "at_least": value._least}, codec, True)
            return
        if isinstance(value, Mapped):
            self._input(name, value.reference("[=]"), self._connect(value, made, annotation, taken))
            if self.node.matrix not in (None, value._step) and self._root_of(self.node.matrix) != value._root:
                raise PipelineError(f"step '{self.node.name}' maps over two steps, '{self.node.matrix}' and '{value._step}', that have different values", self.node.place,
                                    "pass all values to the first map()")
            self.node.matrix = self.node.matrix or value._step
            return
        if self.is_map and _annotations.is_list(made) and not _annotations.is_list(annotation):
            item = _annotations.item_of(made)
            self._check(item, annotation, taken, value)
            is_input = value._codec != "json"
            codec = codec_at(item, taken, self.node.place) if is_input else "text" if is_text(annotation or item, "") else "json"
            self.node.axes.append(Axis(name, "${" + value.reference() + "[*]}", codec, is_input))
            return
        self._input(name, value._source() if isinstance(value, Taken) else value.reference(), self._connect(value, made, annotation, taken))

    def _root_of(self, step: str) -> str:
        node = required("a step").names.get(step)
        while node is not None and isinstance(node.matrix, str):
            step, node = node.matrix, required("a step").names.get(node.matrix)
        return step

    def _check(self, made: Any, annotation: Any, taken: str, value: Artifact) -> None:
        if annotation is not None and made is not None and not _annotations.fits(made, annotation):
            raise PipelineError(f"{taken} is {a(name_of(annotation))}, and {value._described()} is {a(name_of(made))}", self.node.place,
                                notes=[f"the argument is declared in line {self.node.declared.line} of {os.path.basename(self.node.declared.file)}"] if self.node.declared else [])

    def _connect(self, value: Artifact, made: Any, annotation: Any, taken: str) -> str:
        """Returns the codec by which the argument is read; raises where the types do not fit."""
        if annotation is None:
            if value._codec in ("own", "folder"):
                raise PipelineError(f"{taken} has no annotation, and {a(name_of(made))} is read by its type", self.node.declared or self.node.place, f"annotate it as {name_of(made)}")
            return value._codec
        codec = codec_at(annotation, taken, self.node.declared or self.node.place)
        if codec == "path" or value._codec == "path" or (codec in PARQUET and value._codec in PARQUET):
            return codec
        self._check(made, annotation, taken, value)
        return value._codec if codec in ("joblib", "skops") else codec

    def _parameter(self, name: str, value: Parameter) -> None:
        annotation = self.hints.get(name)
        if annotation is not None and self._codec(name) == "path":
            self._input(name, value.expression(), "path")
            return
        if self.is_map and _annotations.is_list(value._annotation or type(value._default)) and not _annotations.is_list(annotation):
            self.node.axes.append(Axis(name, "${params." + value._name + "[*]}", "text" if is_text(annotation, "") else "json"))
            return
        if annotation is not None and value._annotation is not None and not _annotations.fits(value._annotation, annotation):
            raise PipelineError(f"the argument '{name}' of step '{self.node.name}' is {a(name_of(annotation))}, and the pipeline's parameter '{value._name}' is {a(name_of(value._annotation))}",
                                self.node.place)
        self.node.values.append(Value(name, None, "text" if is_text(value._annotation, value._default) else "json", value._name))

    def _axis(self, name: str, values: List[Any]) -> None:
        if not self.is_map:
            raise PipelineError(f"pl.each() makes a step for each value, and '{self.node.name}' is called once", self.node.place, f"write {self.node.name}.map(...)")
        if not values:
            raise PipelineError(f"the axis '{name}' of step '{self.node.name}' has no values", self.node.place)
        annotation = self.hints.get(name)
        plain = [plain_value(value, annotation, f"{name}[{i}]", self.node.place) for i, value in enumerate(values)]
        import json

        texts = [json.dumps(value) if isinstance(value, (list, dict)) else value for value in plain]
        self.node.axes.append(Axis(name, texts, "text" if is_text(annotation, values[0]) else "json"))

    def _value(self, name: str, value: Any) -> None:
        annotation, codec = self.hints.get(name), self._codec(name)
        if codec == "path" and isinstance(value, (str, os.PathLike)):
            text = os.fspath(value)
            self._input(name, text if "://" in text or text.startswith("artifact:") else {"path": text}, "path")
            return
        if codec not in ("", "json"):
            raise PipelineError(f"the argument '{name}' of step '{self.node.name}' is {a(name_of(annotation))}, which comes from a file, and is given as a value",
                                self.node.place, "let a step return it, or name a file: pl.data('./file')")
        plain = plain_value(value, annotation, f"the argument '{name}' of step '{self.node.name}'", self.node.place)
        self.node.values.append(Value(name, plain, "text" if is_text(annotation, value) else "json"))

    def _check_variables(self) -> None:
        """Raises for two arguments whose variables, which are written in capitals, would have the same name."""
        seen: Dict[str, str] = {}
        each: Any
        for each in (*self.node.inputs, *self.node.values, *self.node.axes):
            if (other := seen.setdefault(each.name.upper(), each.name)) != each.name:
                raise PipelineError(f"the arguments '{other}' and '{each.name}' of step '{self.node.name}' differ only in capitals", self.node.declared or self.node.place, "rename one of them")

    def results(self) -> Any:
        """Declares the outputs, and returns the handles of the results, as the function returns values."""
        node = self.node
        place = node.declared or node.place
        if "return" not in self.hints:
            raise PipelineError(f"the result of step '{node.name}' has no annotation, which decides how it is stored", place,
                                f"write `def {self.function.__name__}(...) -> dict:` or another type; `-> None` for none")
        annotation = self.hints["return"]
        handles = []
        for name, kind in _annotations.outputs_of(annotation):
            codec = codec_at(kind, f"the result '{name}' of step '{node.name}'", place)
            if codec == "joblib" and "skops" in (requirements(node.options) or requirements(required("a step").options)):
                codec = "skops"
            if name in node.outputs:
                raise PipelineError(f"step '{node.name}' has two results '{name}'", place, 'name each: tuple[Annotated[A, "first"], Annotated[B, "second"]]')
            node.outputs[name] = output_file(name, kind, codec)
            node.words.append(f"{name}:{codec}")
            is_mapped = bool(node.axes or node.matrix)
            details = (node, node.name, name, kind, codec)
            handles.append(Mapped(*details, root=self._root_of(node.name)) if is_mapped else Artifact(*details))
        if not handles:
            return None
        origin = getattr(annotation, "__origin__", annotation)
        if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):
            return origin(*handles)
        return tuple(handles) if len(handles) > 1 else handles[0]


class Taken(Artifact):
    """The input of a round: a result of the round before, in the first round of a step before the rounds."""

    def __init__(self, rounds: Rounds, first: Artifact) -> None:
        super().__init__(first._node, first._step, first._output, first._annotation, first._codec)
        self._rounds = rounds

    def _source(self) -> Any:
        return self._rounds  # the document knows its result once the body has been traced


def output_file(name: str, annotation: Any, codec: str) -> Any:
    """Returns an output as the document has it: its file name, or a map."""
    extras = getattr(annotation, "__metadata__", ())
    file = next((each.name for each in extras if isinstance(each, FileName)), None)
    if file is None:
        extension = extension_of(codec, annotation) if codec == "own" else CODECS[codec][0]
        file = name + extension
    if any(each is Metrics or isinstance(each, Metrics) for each in extras):
        return {"file": file, "metrics": True}
    return file
