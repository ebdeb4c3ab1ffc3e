"""The decorators ``@step`` and ``@pipeline``."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar, overload

from . import _annotations
from . import _settings
from ._document import FOLDER, RESOURCES, Document, find_option, to_yaml
from ._errors import PipelineError, Place, callers_place, did_you_mean
from ._handles import Parameter
from ._source import check_function, check_names, place_of
from ._trace import Call, Node, current, plain_value, tracing
from .pipe_runtime import SHIM

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    from ._options import PipelineOptions, StepOptions
    from ._results import LiveRun, Run

    P = ParamSpec("P")
else:
    P = TypeVar("P")
R = TypeVar("R")

STEP_ONLY = {"name", "after", "when", "matrix", "python", "docker", "kubernetes", "slurm", "resources", "enable_cache", "shell"}
PIPELINE_ONLY = {"shell", "name", "description", "docker", "kubernetes", "slurm", "resources", "enable_cache", "include"}


def check_options(options: Mapping[str, Any], owner: str, extra: Sequence[str], place: Place) -> None:
    """Raises for an option that does not exist, with the one that was probably meant."""
    known = [*getattr(_settings, owner).__annotations__, *extra, *RESOURCES]
    for name, value in options.items():
        if name not in known:
            raise PipelineError(f"there is no option '{name}'", find_option(place, (name,)) or place, did_you_mean(name, known), [f"allowed: {', '.join(sorted(known))}"])
        inner = _settings.NESTED[owner].get(name) or _settings.NESTED["Settings"].get(name)
        if inner:
            _check_map(value, inner, (name,), place)


def _check_map(value: Any, owner: str, path: Tuple[str, ...], place: Place) -> None:
    if not isinstance(value, Mapping):
        return  # pipe's own check says what it should be
    known = list(getattr(_settings, owner).__annotations__)
    for name, part in value.items():
        if name not in known:
            raise PipelineError(f"unknown key '{name}' in '{path[-1]}'", find_option(place, (*path, str(name))) or place, did_you_mean(str(name), known), [f"allowed: {', '.join(known)}"])
        if inner := _settings.NESTED.get(owner, {}).get(name):
            _check_map(part, inner, (*path, name), place)


class Step(Generic[P, R]):
    """A function that is a step: called in a pipeline it becomes one, elsewhere it is the function."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], place: Place) -> None:
        self._function = function
        self._inner = check_function(function, place)
        self._options = dict(options)
        self._place = place
        self._is_checked = False
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The step's name: the function's, unless the option ``name`` says another."""
        return str(self._options.get("name", self._inner.__name__))

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        if current() is None:
            return self._function(*arguments, **named)  # type: ignore[no-any-return]
        return self._add(arguments, named, False)  # type: ignore[no-any-return]

    def map(self, *arguments: Any, **named: Any) -> List[R]:
        """Makes a step for each value of the lists among the arguments, and of each mapped result."""
        if current() is None:
            raise PipelineError(f"{self._inner.__name__}.map() stands in the function of a pipeline", callers_place(), "call it in a function with @pl.pipeline above it")
        return self._add(arguments, named, True)  # type: ignore[no-any-return]

    def with_options(self, **options: Unpack[StepOptions]) -> Step[P, R]:
        """Returns the same step with other options, for one call."""
        place = callers_place()
        check_options(options, "StepSettings", [*STEP_ONLY], place)
        changed: Step[P, R] = Step(self._function, {**self._options, **options}, self._place)
        changed._is_checked = self._is_checked
        return changed

    configure = with_options

    def _add(self, arguments: Sequence[Any], named: Mapping[str, Any], is_map: bool) -> Any:
        trace = current()
        assert trace is not None
        if not self._is_checked:
            check_names(self._inner)
            self._is_checked = True
        options = {key: value for key, value in self._options.items() if key != "name"}
        if self._inner.__doc__ and "description" not in options and (doc := inspect.getdoc(self._inner)):
            options["description"] = doc.strip().splitlines()[0]
        node = Node(self.name.replace(".", "-"), callers_place(), options)
        node.declared = self._place
        call = Call(node, self._inner, is_map)
        trace.add(node)
        call.bind(arguments, named)
        if is_map and not node.axes and node.matrix is None and "matrix" not in options:
            raise PipelineError(f"{node.name}.map() is given no list: no argument has more than one value", node.place, "pass a list, pl.each([...]) or a mapped result; or call the step")
        return call.results()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise PipelineError(f"'{self._inner.__name__}' is a method, and a step has no object to call it on", self._place)

    def __repr__(self) -> str:
        return f"<step {self.name}>"


class Pipeline(Generic[P]):
    """A function that declares steps by calling them."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], place: Place) -> None:
        if not inspect.isfunction(function):
            raise PipelineError("a pipeline is a function", place)
        self._function = function
        self._options = dict(options)
        self._place = place
        self._nodes: Dict[str, Node] = {}
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The pipeline's name: the function's, unless the option ``name`` says another."""
        return str(self._options.get("name", self._function.__name__))

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """In another pipeline: adds this one's steps to it. Elsewhere: runs it, as ZenML does."""
        if current() is not None:
            return self._function(*arguments, **named)
        values = _annotations.signature_of(self._function).bind(*arguments, **named).arguments
        return self.run(**values)

    def with_options(self, **options: Unpack[PipelineOptions]) -> Pipeline[P]:
        """Returns the same pipeline with other options."""
        check_options(options, "PipelineSettings", [*PIPELINE_ONLY], callers_place())
        return Pipeline(self._function, {**self._options, **options}, self._place)

    def document(self) -> Document:
        """Returns the document that the pipeline's function declares."""
        with tracing(self.name, self._options) as trace:
            self._function(**self._parameters(trace.parameters))
        self._nodes = trace.names
        if not trace.nodes:
            raise PipelineError(f"the pipeline '{self.name}' calls no step", self._place, "its function calls functions that have @pl.step")
        options = {key: value for key, value in self._options.items() if key != "name"}
        if "description" not in options and (doc := inspect.getdoc(self._function)):
            options["description"] = doc.strip().splitlines()[0]
        return Document(trace, options, self._place)

    def node(self, step: str) -> Optional[Node]:
        """Returns the declaration of a step, or None where the pipeline's function calls none of this name."""
        if not self._nodes:
            self.document()
        return self._nodes.get(step)

    def last_run(self, identifier: str = "latest") -> Run:
        """Returns an earlier run: its newest, or the one of an identifier."""
        from ._results import Run

        return Run(self, f"{self.name}@latest" if identifier == "latest" else identifier)

    def _parameters(self, parameters: Dict[str, Parameter]) -> Dict[str, Parameter]:
        hints = _annotations.annotations_of(self._function)
        for each in _annotations.parameters_of(self._function):
            place = place_of(self._function)
            if each.default is each.empty:
                raise PipelineError(f"the parameter '{each.name}' of pipeline '{self.name}' has no default", place, f"give it one: -p {each.name}=... and run({each.name}=...) replace it")
            made = Parameter(each.name, each.default, hints.get(each.name))
            made.document_value = plain_value(each.default, made._annotation, f"the parameter '{each.name}'", place)  # type: ignore[attr-defined]
            parameters[each.name] = made
        return parameters

    def export(self) -> str:
        """Returns the pipeline as YAML, and writes the code of its function steps beside it, below __pipe__."""
        document = self.document()
        write_code(self.folder(), document)
        return to_yaml(document.root)[0]

    def folder(self) -> str:
        """Returns the folder of the pipeline: that of its module, or of the package that the module is in."""
        file = self._function.__code__.co_filename
        if not os.path.exists(file):
            return os.getcwd()
        folder = os.path.dirname(os.path.abspath(file))
        while os.path.exists(os.path.join(folder, "__init__.py")):
            folder = os.path.dirname(folder)
        return folder

    def write(self) -> str:
        """Writes the document beside the code, and returns its path."""
        return self._write()[0]

    def _write(self) -> Tuple[str, Document, List[Tuple[str, ...]]]:
        document, folder = self.document(), self.folder()
        write_code(folder, document)
        made_by = os.path.basename(self._function.__code__.co_filename)
        heading = [f"# Made by {made_by if made_by.endswith('.py') else 'a notebook'} with pipe_ml: changes here are lost."]
        text, paths = to_yaml(document.root, heading)
        path = os.path.join(folder, f"{self.name}.yaml")
        if os.path.basename(self.name) != self.name or self.name.startswith("."):
            raise PipelineError(f"'{self.name}' cannot be the name of a pipeline, and of its file", find_option(self._place, ("name",)) or self._place, "use letters, digits, - and _")
        if os.path.exists(path) and "with pipe_ml: changes here are lost." not in _first_line(path):
            raise PipelineError(f"{os.path.basename(path)} is there, and was not made by this pipeline", self._place, "rename it, or the pipeline: @pl.pipeline(name=...)")
        replace(path, text)
        return path, document, paths

    def check(self) -> None:
        """Raises PipelineError for all that pipe finds wrong, each at its line of Python."""
        from ._checks import check

        check(*self._write())

    def run(self, *, orchestrator: str = "", jobs: int = 0, profile: str = "", no_cache: bool = False, force: Sequence[str] = (), until: str = "", state: str = "",
            show: Optional[bool] = None, on_event: Optional[Callable[[Dict[str, Any]], None]] = None, **parameters: Any) -> Run:
        """Runs the pipeline and returns the run; raises RunFailed with the traceback of the step that failed."""
        return self.start(orchestrator=orchestrator, jobs=jobs, profile=profile, no_cache=no_cache, force=force, until=until, state=state, **parameters).wait(show=show, on_event=on_event)

    def start(self, *, orchestrator: str = "", jobs: int = 0, profile: str = "", no_cache: bool = False, force: Sequence[str] = (), until: str = "", state: str = "",
              **parameters: Any) -> LiveRun:
        """Starts a run and returns it: an iterator of its events, also for ``async for``; ``wait()`` returns the run."""
        from ._results import LiveRun

        self._check_parameters(parameters)
        self.check()
        words = [word for flag, value in (("-o", orchestrator), ("-j", jobs), ("--profile", profile), ("--until", until)) if value for word in (flag, str(value))]
        words += [*(["--no-cache"] if no_cache else []), *(word for name in force for word in ("--force", name))]
        return LiveRun(self, os.path.join(self.folder(), f"{self.name}.yaml"), words, self._values(parameters), state)

    def _check_parameters(self, parameters: Mapping[str, Any]) -> None:
        known = [each.name for each in _annotations.parameters_of(self._function)]
        for name in parameters:
            if name not in known:
                raise PipelineError(f"the pipeline '{self.name}' has no parameter '{name}'", callers_place(), did_you_mean(name, known), [f"it has {', '.join(known) or 'none'}"])

    def _values(self, parameters: Mapping[str, Any]) -> Dict[str, Any]:
        hints = _annotations.annotations_of(self._function)
        return {name: plain_value(value, hints.get(name), f"the parameter '{name}'", callers_place()) for name, value in parameters.items()}

    def main(self, arguments: Optional[Sequence[str]] = None) -> None:
        """Runs the command line of a program, which has the commands of `pipe`: ``./digits.py run | plan | show | logs | ...``."""
        from ._main import main

        main(self, list(sys.argv[1:] if arguments is None else arguments))

    def _repr_html_(self) -> str:
        from ._notebook import pipeline_picture

        return pipeline_picture(self)

    def __repr__(self) -> str:
        return f"<pipeline {self.name}>"


def _first_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline()


def write_code(folder: str, document: Document) -> None:
    """Writes the code of function steps and the files that run it; a file with the same content keeps its time."""
    if not document.files:
        return
    target = os.path.join(folder, FOLDER)
    os.makedirs(target, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    files = {**document.files, f"{FOLDER}/.gitignore": "*\n"}
    for name in SHIM:
        with open(os.path.join(here, name), encoding="utf-8") as file:
            files[f"{FOLDER}/{name}"] = file.read()
    for name, text in files.items():
        replace(os.path.join(folder, name), text)


def replace(path: str, text: str) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, UnicodeDecodeError):
        pass
    temporary = f"{path}.{os.getpid()}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


@overload
def step(function: Callable[P, R]) -> Step[P, R]: ...
@overload
def step(**options: Unpack[StepOptions]) -> Callable[[Callable[P, R]], Step[P, R]]: ...
def step(function: Any = None, **options: Any) -> Any:
    """Makes a function a step: ``@step`` or ``@step(docker={...}, memory="1GiB")``, with the options of YAML."""
    place = callers_place()
    if function is not None:
        return Step(function, options, place)
    check_options(options, "StepSettings", [*STEP_ONLY], place)
    return lambda made: Step(made, options, place)


@overload
def pipeline(function: Callable[P, Any]) -> Pipeline[P]: ...
@overload
def pipeline(**options: Unpack[PipelineOptions]) -> Callable[[Callable[P, Any]], Pipeline[P]]: ...
def pipeline(function: Any = None, **options: Any) -> Any:
    """Makes a function a pipeline: its parameters, which have defaults, are the pipeline's."""
    place = callers_place()
    if function is not None:
        return Pipeline(function, options, place)
    check_options(options, "PipelineSettings", [*PIPELINE_ONLY], place)
    return lambda made: Pipeline(made, options, place)


__all__ = ["Pipeline", "Step", "pipeline", "step"]
