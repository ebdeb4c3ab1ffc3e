"""Runs a function as a step, and stores values as files.

A copy of this file travels with the code of each function step, because nothing of pipe is installed in a
step's image; it takes any Python from 3.8 and no other package. There it also stands in for the module
``pipe_ml``, so that ``pl.metric(...)`` works in a step. Usage, as a step's command has it::

    python pipe_step.py digits.train.py data:npy models:joblib* c=json name=text@title -> result:joblib

``NAME:CODEC`` is an input (with ``*`` a gathered one), ``NAME=json`` or ``NAME=text`` a parameter (with
``@`` the name that it has in the pipeline), and each word after ``->`` an output.
"""

import json
import os
import sys

from pipe_types import StepError, a, annotations_in, from_plain, load_json, read_annotation, records, save_json, sources

# --- In place of pipe_ml ----------------------------------------------------------------------------------

_OF_VALUES = ("Codec", "FileName", "Metrics", "Pickle", "codec")
_OF_RUNTIME = ("addresses", "barrier", "checkpoint", "local_rank", "log", "metric", "node_rank", "progress", "rank", "stopping", "world_size")
__all__ = ["StepError", "pipeline", "step", *_OF_RUNTIME, *_OF_VALUES]


def step(function=None, **_options):
    """Stands in for the decorators in a step's own process: the function stays what it is."""
    return function if function is not None else lambda made: made


pipeline = step


def _values():
    """Returns the module of codecs, which a step that handles JSON alone does not load."""
    import pipe_values

    return pipe_values


def _runtime():
    """Returns the module of what code in a step calls."""
    import pipe_runtime

    return pipe_runtime


def __getattr__(name):
    if name in _OF_VALUES:
        return getattr(_values(), name)
    if name in _OF_RUNTIME:
        return getattr(_runtime(), name)
    raise AttributeError(f"pipe_ml has no {name!r} inside a step")


# --- The step's process -----------------------------------------------------------------------------------


class _Word:
    """An argument or output of the command line: ``data:npy``, ``models:joblib*``, ``c=json@rate``."""

    def __init__(self, text):
        mark = ":" if ":" in text else "="
        self.name, _, rest = text.partition(mark)
        self.is_parameter = mark == "="
        self.codec, _, source = rest.partition("@")
        self.source = source or self.name
        self.is_gathered = self.codec.endswith("*")
        self.codec = self.codec.rstrip("*")


def _load_module(path):
    """Executes the step's code as the module that it was taken from, so that its classes have their names."""
    import types

    module_name, _, function = os.path.basename(path)[:-len(".py")].rpartition(".")
    module = types.ModuleType(module_name)
    module.__file__ = os.path.join(os.getcwd(), *module_name.split(".")) + ".py"
    module.__package__ = module_name.rpartition(".")[0]
    sys.modules[module_name] = module
    with open(path, encoding="utf-8") as file:
        source = sources[module_name] = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return getattr(module, function)


def _hint(function, name):
    """Returns the annotation of an argument, or of the result (``return``); None if only a type checker could read it."""
    annotation = annotations_in(function).get(name)
    made = read_annotation(annotation, function.__module__, function.__globals__)
    return None if isinstance(made, str) else made


def _variable(prefix, name):
    variable = prefix + name.upper().replace("-", "_")
    if variable not in os.environ:
        raise StepError(f"the variable {variable} is not set: pipe starts this program, as a step of a run")
    return os.environ[variable]


def _load(path, codec, annotation):
    return load_json(path, annotation) if codec == "json" else _values().load(path, codec, annotation)


def _item_of(annotation):
    arguments = getattr(annotation, "__args__", None)
    return arguments[0] if arguments else None


def _argument(word, function):
    annotation = _hint(function, word.name)
    if word.is_parameter:
        text = _variable("PIPE_PARAM_", word.source)
        if word.codec == "text":
            return text if annotation is None else from_plain(text, annotation, word.name)
        try:
            plain = json.loads(text)
        except ValueError:
            plain = text
        return from_plain(plain, annotation, word.name)
    path = _variable("PIPE_INPUT_", word.source)
    if not word.is_gathered:
        return _load(path, word.codec, annotation)
    with open(os.path.join(path, "index.json"), encoding="utf-8") as file:
        entries = json.load(file)
    return [_load(os.path.join(path, entry["file"]), word.codec, _item_of(annotation)) for entry in entries if entry["file"] is not None]


def _result_types(annotation, count):
    """Returns the annotation of each output."""
    if count == 1:
        return [annotation]
    if hasattr(annotation, "_fields"):
        return list(records().fields_of(annotation).values())
    return list(getattr(annotation, "__args__", None) or [None] * count)


def _store(result, outputs, annotation):
    if not outputs:
        if result is not None:
            raise StepError(f"the function returned {a(type(result).__name__)}, and declares no result: annotate it, as `-> {type(result).__name__}`")
        return
    results = (result,) if len(outputs) == 1 else result
    if not isinstance(results, tuple) or len(results) != len(outputs):
        raise StepError(f"the function should return {len(outputs)} values, {', '.join(word.name for word in outputs)}, and returned {result!r:.80}")
    for value, word, kind in zip(results, outputs, _result_types(annotation, len(outputs))):
        try:
            path = _variable("PIPE_OUTPUT_", word.name)
            save_json(value, path, kind) if word.codec == "json" else _values().save(value, path, word.codec, kind)
        except RecursionError as error:
            raise StepError("it is nested too deeply, or contains itself") from error
        except Exception as error:
            error.while_doing = f"while storing its result '{word.name}'"
            raise


def main(words):
    path, words = words[0], words[1:]
    end = words.index("->") if "->" in words else len(words)
    inputs, outputs = [_Word(word) for word in words[:end]], [_Word(word) for word in words[end + 1:]]
    sys.path.append(sys.path[0])  # where the modules beside this file are
    sys.path[0] = os.getcwd()
    sys.modules["pipe_ml"] = sys.modules[__name__]
    try:
        function = _load_module(path)
        arguments = {}
        for word in inputs:
            try:
                arguments[word.name] = _argument(word, function)
            except Exception as error:
                error.while_doing = f"while reading its argument '{word.name}'"
                raise
        result = function(**arguments)
        if hasattr(result, "__await__"):
            import asyncio

            result = asyncio.run(result)
        if "PIPE_NODE_COUNT" not in os.environ or _runtime().local_rank() == 0:  # The processes of a node share the folder of its outputs.
            _store(result, outputs, _hint(function, "return"))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        _runtime().report_failure(error)
        return 1
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
