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

if __package__:
    from .pipe_types import StepError, fields_of, float_text, from_plain, is_finite, load_json, read_annotation, save_json, sources
else:
    from pipe_types import StepError, fields_of, float_text, from_plain, is_finite, load_json, read_annotation, save_json, sources

__all__ = ["Codec", "FileName", "Metrics", "Pickle", "StepError", "addresses", "barrier", "checkpoint", "codec", "local_rank", "log", "metric",
           "node_rank", "progress", "rank", "stopping", "world_size"]

# --- For code in a step -----------------------------------------------------------------------------------


def _line(**fields):
    for name, value in fields.items():
        if isinstance(value, float) and not is_finite(value):
            fields[name] = float_text(value)
    text = "@pipe " + json.dumps(fields, default=str) + "\n"
    sys.stderr.flush()
    os.write(2, text.encode())


def log(message, level="info", **fields):
    """Writes a line with fields to the step's log."""
    _line(level=level, message=str(message), **({"fields": fields} if fields else {}))


def progress(fraction, message=""):
    """Reports how far the step is, from 0 to 1."""
    _line(progress=min(1.0, max(0.0, float(fraction))), **({"message": message} if message else {}))


def metric(name, value, step=None):
    """Reports a metric of the run: a number, or a point of a series where ``step`` is given."""
    _line(metric=str(name), value=float(value), **({} if step is None else {"step": int(step)}))


def checkpoint():
    """Returns the folder that survives the step's attempts until it succeeds."""
    from pathlib import Path

    if not os.environ.get("PIPE_CHECKPOINT"):
        raise StepError("this step has no checkpoint folder: declare it with @step(checkpoint=True)")
    return Path(os.environ["PIPE_CHECKPOINT"])


_stop = {"installed": False, "asked": False}


def stopping():
    """Returns True once the step is asked to end, by Ctrl-C, a timeout or another step's failure."""
    import signal

    if not _stop["installed"]:
        _stop["installed"] = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: _stop.update(asked=True))
    return _stop["asked"]


def _number(name, default):
    return int(os.environ[name]) if "PIPE_NODE_COUNT" in os.environ else default


def rank():
    """Returns the number of this process, from 0, among all of a step with ``nodes``. Results are those of the first process of a node."""
    return _number("RANK", 0)


def world_size():
    """Returns the number of those processes."""
    return _number("WORLD_SIZE", 1)


def local_rank():
    """Returns the number of this process among those of its node."""
    return _number("LOCAL_RANK", 0)


def node_rank():
    """Returns the number of this process's node."""
    return _number("PIPE_NODE_RANK", 0)


def addresses():
    """Returns the addresses of all nodes, in order; none for a step without ``nodes``."""
    return [each for each in os.environ.get("PIPE_NODE_ADDRESSES", "").split(",") if each]


_waiting_room = []


def barrier():
    """Returns once all processes of the step have called it equally often. The attempt ends with the first that fails."""
    import socket
    import time

    others = world_size() - 1
    if others == 0:
        return
    place = (addresses()[0], int(os.environ["MASTER_PORT"]) + world_size() + 1)
    if rank() == 0:
        if not _waiting_room:
            _waiting_room.append(socket.create_server(("", place[1]), backlog=4096))
        arrived = [_waiting_room[0].accept()[0] for _ in range(others)]
        for one in arrived:
            one.sendall(b".")
            one.close()
        return
    while True:
        try:
            with socket.create_connection(place) as one:
                if one.recv(1):
                    return
        except OSError:
            pass
        time.sleep(0.05)


def step(function=None, **_options):
    """Stands in for the decorators in a step's own process: the function stays what it is."""
    return function if function is not None else lambda made: made


pipeline = step


def _values():
    """Returns the module of codecs, which a step that handles JSON alone does not load."""
    if __package__:
        from . import pipe_values
    else:
        import pipe_values
    return pipe_values


def __getattr__(name):
    if name in ("Codec", "FileName", "Metrics", "Pickle", "codec"):
        return getattr(_values(), name)
    if name == "DataFrame":
        import pandas

        return pandas.DataFrame
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
    annotation = getattr(function, "__annotations__", {}).get(name)
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
        return list(fields_of(annotation).values())
    return list(getattr(annotation, "__args__", None) or [None] * count)


def _store(result, outputs, annotation):
    if not outputs:
        if result is not None:
            raise StepError(f"the function returned a {type(result).__name__}, and declares no result: annotate it, as `-> {type(result).__name__}`")
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


def _report(error):
    """Prints the traceback without this file's frames, and tells pipe what was raised."""
    import traceback

    here = os.path.dirname(os.path.abspath(__file__)) + os.sep + "pipe_"
    frames = error.__traceback__
    while frames and os.path.abspath(frames.tb_frame.f_code.co_filename).startswith(here):
        frames = frames.tb_next
    sys.stdout.flush()
    doing = getattr(error, "while_doing", "")
    if isinstance(error, StepError):
        print(f"{type(error).__name__}: {error}" + (f" ({doing})" if doing else ""), file=sys.stderr)
    else:
        traceback.print_exception(type(error), error, frames)
    at = [doing] if doing else []
    if frames:
        last = [frame for frame in traceback.extract_tb(frames) if os.sep + "lib" + os.sep not in frame.filename][-1:]
        at += [f"{frame.filename}:{frame.lineno}, in {frame.name}" for frame in last]
    causes, cause = [], error.__cause__
    while cause is not None and len(causes) < 20:
        causes.append({"type": type(cause).__qualname__, "message": str(cause)})
        cause = cause.__cause__
    failure = {"type": type(error).__qualname__, "message": str(error), "how": "raised", "where": ", ".join(at), "causes": causes}
    if path := os.environ.get("PIPE_FAILURE_FILE"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(failure, file)


def main(words):
    path, words = words[0], words[1:]
    end = words.index("->") if "->" in words else len(words)
    inputs, outputs = [_Word(word) for word in words[:end]], [_Word(word) for word in words[end + 1:]]
    sys.path.append(sys.path[0])  # where pipe_values is
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
        if local_rank() == 0:  # The processes of a node share the folder of its outputs.
            _store(result, outputs, _hint(function, "return"))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        _report(error)
        return 1
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
