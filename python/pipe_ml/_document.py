"""The document of a pipeline: what pipeline.yaml would be, and the line of Python that each of its lines comes from."""

from __future__ import annotations

import ast
import datetime
import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._errors import PipelineError, Place
from ._handles import Artifact, Mapped, _Comparable, as_condition
from ._source import module_name, source_of
from ._trace import Node, Rounds, Trace
from .pipe_runtime import SHIM

FOLDER = "__pipe__"  # beside the pipeline: the code of its function steps
RESOURCES = ("memory", "cpu_count", "gpu_count", "gpu_class", "gpu_memory", "gpus", "devices", "accelerator", "shm_size", "instance_type", "compute_capability",
             "auto_select_gpus", "placement_constraints", "preflight")
GROUPS = ("docker", "resources", "kubernetes", "slurm")
Path = Tuple[str, ...]


class Document:
    """A pipeline as a document, and the files of its steps' code."""

    def __init__(self, trace: Trace, options: Mapping[str, Any], place: Place) -> None:
        self.files: Dict[str, str] = {}
        self._code: Dict[Any, str] = {}  # by function
        self.places: Dict[str, Place] = {"": place}  # by step
        self.declared: Dict[str, Place] = {"": place}
        self.root: Dict[str, Any] = {"name": trace.name}
        options = dict(options)
        for key in ("description", "tags", "headline", "notify", "execution_mode", "include"):
            if key in options:
                self.root[key] = plain(options.pop(key))
        if trace.parameters:
            self.root["parameters"] = {name: each.document_value for name, each in trace.parameters.items()}  # type: ignore[attr-defined]
        self.root.update(common(options))
        self.root["steps"] = {}
        for node in trace.nodes:
            self.places[node.name] = node.place
            self.declared[node.name] = node.declared or node.place
            self.root["steps"][node.name] = self._step(node)

    def _step(self, node: Node) -> Dict[str, Any]:
        options = dict(node.options)
        step: Dict[str, Any] = {}
        for key in ("description", "orchestrator"):
            if key in options:
                step[key] = options.pop(key)
        if matrix := self._matrix(node, options):
            step["matrix"] = matrix
        if node.repeat is not None:
            step["repeat"] = repeat_of(node)
        if node.notebook:
            step["notebook"] = node.notebook
        else:
            step["command"] = self._command(node, options) if node.function is not None else plain(node.command)
        parameters = self._parameters(node)
        if parameters:
            step["parameters"] = parameters
        inputs = {each.name: source_of_input(each.source) for each in node.inputs}
        if inputs:
            step["inputs"] = inputs
        if node.outputs:
            step["outputs"] = list(node.outputs) if all(name == file for name, file in node.outputs.items()) else node.outputs
        if "after" in options:
            step["after"] = names_of(options.pop("after"))
        if "when" in options:
            step["when"] = as_condition(options.pop("when")).text
        for key in ("checkpoint", "publish", "publish_to", "allow_failure", "max_parallel", "uses", "services", "nodes", "wait", "run_on", "version"):
            if key in options:
                step[key] = plain(options.pop(key))
        step.update(common(options))
        return step

    @staticmethod
    def _matrix(node: Node, options: Dict[str, Any]) -> Any:
        own = options.pop("matrix", None)
        if node.axes:
            axes = {each.name: each.values for each in node.axes}
            return {**axes, **plain(own)} if isinstance(own, Mapping) else axes
        if isinstance(own, Mapped):
            return own._step
        return plain(own) if own is not None else node.matrix

    def _command(self, node: Node, options: Dict[str, Any]) -> List[str]:
        assert node.function is not None
        file = self._code.get(node.function)
        if file is None:
            name = node.function.__name__
            file = self._code[node.function] = f"{FOLDER}/{module_name(node.function)}.{name}.py"
            self.files[file] = source_of(node.function).code_of(name)
        words = [f"{each.name}:{each.codec}{'*' if each.is_gathered else ''}" for each in node.inputs]
        words += [f"{each.name}={each.codec}" + (f"@{each.of_pipeline}" if each.of_pipeline and each.of_pipeline != each.name else "") for each in node.values]
        words += [f"{each.name}{':' if each.is_input else '='}{each.codec}" for each in node.axes]
        if node.words:
            words += ["->", *node.words]
        if "code" in options:  # data files beside the function: `code` lists what else the step sees
            more = options.pop("code")
            options["code"] = [*([more] if isinstance(more, str) else more), file, *(f"{FOLDER}/{each}" for each in SHIM)]
        return [*as_list(options.pop("python", "python")), f"{FOLDER}/{SHIM[0]}", file, *words]

    @staticmethod
    def _parameters(node: Node) -> Any:
        if node.function is None:
            return plain(node.parameters) if node.parameters is not None else None
        found: Dict[str, Any] = {}
        for each in node.values:
            name = each.of_pipeline or each.name
            if name == "round" and each.of_pipeline and node.repeat is not None:
                continue  # every repeated step has it
            if name in found and not (each.of_pipeline and found[name] is None):
                raise PipelineError(f"step '{node.name}' has a parameter '{name}' of its own, and the pipeline's '{name}' as another argument", node.place, "rename one of them")
            found[name] = None if each.of_pipeline else each.value
        return found

    def place_of(self, path: Path) -> Place:
        """Returns the line of Python that wrote a value of the document."""
        if path[:1] != ("steps",) or len(path) < 2:
            return find_option(self.declared[""], path) or self.places[""]
        inside = path[2:]
        if inside[:1] and inside[0] not in ("command", "notebook", "inputs", "outputs", "parameters", "matrix"):
            if found := find_option(self.declared.get(path[1], self.places[""]), inside) or find_option(self.places.get(path[1], self.places[""]), inside):
                return found
        return self.places.get(path[1], self.places[""])


def as_list(value: Any) -> List[str]:
    return [value] if isinstance(value, str) else list(value)


def repeat_of(node: Node) -> Any:
    rounds: Rounds = node.repeat
    declarer = next((each for each in rounds.nodes if not each.axes and each.matrix is None and "matrix" not in each.options), rounds.nodes[0])
    if declarer is not node:
        return declarer.name
    return {**({"until": rounds.until} if rounds.until else {}), "max": rounds.max}


def source_of_input(source: Any) -> Any:
    if isinstance(source, Rounds):
        return {"first": source.first.reference(), "then": source.result.reference()}
    return source


def names_of(steps: Any) -> List[str]:
    """Returns the steps of ``after``: results stand for the steps that make them."""
    parts = steps if isinstance(steps, (list, tuple)) else [steps]
    return [each._step if isinstance(each, Artifact) else each if isinstance(each, str) else getattr(each, "name", str(each)) for each in parts]


def common(options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the options that steps and pipelines share, as the document has them."""
    result: Dict[str, Any] = {}
    settings = {key: dict(value) for key, value in plain(options.pop("settings", {})).items()}
    for group in GROUPS:
        if group in options:
            settings.setdefault(group, {}).update(plain(options.pop(group)))
    resources = {key: plain(options.pop(key)) for key in RESOURCES if key in options}
    if resources:
        settings.setdefault("resources", {}).update(resources)
    if "code" in options:
        result["code"] = plain(options.pop("code"))
    for key in ("environment", "secrets"):
        if key in options:
            result[key] = plain(options.pop(key))
    if settings := {key: value for key, value in settings.items() if value}:
        result["settings"] = settings
    if "retry" in options:
        retry = options.pop("retry")
        result["retry"] = {"max_retries": retry} if isinstance(retry, int) and not isinstance(retry, bool) else plain(retry)
    if "enable_cache" in options:  # ZenML's name
        options.setdefault("cache", options.pop("enable_cache"))
    for key in ("timeout", "stalled_after", "cache", "shell"):
        if key in options:
            result[key] = plain(options.pop(key))
    return result


def plain(value: Any) -> Any:
    """Returns an option's value as the document has it."""
    if isinstance(value, datetime.timedelta):
        return f"{round(value.total_seconds() * 1000)}ms"
    if isinstance(value, _Comparable):
        return value.expression()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(part) for part in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


# --- YAML -------------------------------------------------------------------------------------------------

_SAFE = re.compile(r"^[A-Za-z/_][A-Za-z0-9_./@+-]*$")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}


def scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _SAFE.match(value) and value.lower() not in _WORDS else json.dumps(value, ensure_ascii=False)
    return "null" if value is None else json.dumps(value)


def flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def to_yaml(root: Mapping[str, Any], heading: Sequence[str] = ()) -> Tuple[str, List[Path]]:
    """Returns the text, and for each of its lines the keys that lead to it."""
    lines: List[str] = list(heading)
    paths: List[Path] = [() for _ in heading]

    def write(members: Mapping[str, Any], path: Path) -> None:
        indent = "  " * len(path)
        for key, value in members.items():
            paths.append((*path, str(key)))
            if isinstance(value, Mapping) and value:
                lines.append(f"{indent}{scalar(str(key))}:")
                write(value, paths[-1])
            else:
                lines.append(f"{indent}{scalar(str(key))}: {flow(value)}")

    write(root, ())
    return "\n".join(lines) + "\n", paths


# --- Places -----------------------------------------------------------------------------------------------

_trees: Dict[str, Tuple[int, ast.Module]] = {}


def tree_of(file: str) -> Optional[ast.Module]:
    import linecache

    try:
        text = "".join(linecache.getlines(file))
        known = _trees.get(file)
        if known is None or known[0] != hash(text):
            known = _trees[file] = (hash(text), ast.parse(text))
        return known[1]
    except SyntaxError:
        return None


def find_option(place: Place, path: Sequence[str]) -> Optional[Place]:
    """Returns the line of an option in the call that stands at the place: a keyword, and further in the dict's key."""
    tree = tree_of(place.file)
    if tree is None:
        return None
    if path[:1] == ("settings",):
        path = path[1:]
    inner = path[1:] if path[:1] == ("resources",) else ()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not call.lineno <= place.line <= (call.end_lineno or call.lineno):
            continue
        for keyword in call.keywords:
            if keyword.arg in path[:1] or keyword.arg in inner[:1] or keyword.arg == "settings":
                node: ast.expr = keyword.value
                rest = path[1:] if keyword.arg in path[:1] else path if keyword.arg == "settings" else ()
                return _descend(node, rest, Place(place.file, getattr(keyword, "lineno", node.lineno), node.col_offset + 1))
    return None


def _descend(node: ast.expr, path: Sequence[str], place: Place) -> Place:
    for key in path:
        if isinstance(node, ast.Call):
            found = next(((each.value, each.value) for each in node.keywords if each.arg == key), None)
        elif isinstance(node, ast.Dict):
            found = next(((name, value) for name, value in zip(node.keys, node.values) if isinstance(name, ast.Constant) and name.value == key), None)
        else:
            found = None
        if found is None:
            return place
        place, node = Place(place.file, found[0].lineno, found[0].col_offset + 1), found[1]
    return place
