"""What a step's code calls, as ``pl.metric(...)`` and ``pl.rank()``, and what its process tells pipe.

A copy of this file travels with the code of each function step, for any Python from 3.8. pipe_step.py loads it
in a step that calls one of these functions, or fails.
"""

import json
import os
import sys

if __package__:
    from .pipe_types import StepError, float_text, is_finite
else:
    from pipe_types import StepError, float_text, is_finite

SHIM = ("pipe_step.py", "pipe_types.py", "pipe_records.py", "pipe_values.py", "pipe_runtime.py")  # what travels with a step's code
__all__ = ["addresses", "barrier", "checkpoint", "local_rank", "log", "metric", "node_rank", "progress", "rank", "stopping", "world_size"]


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


def report_failure(error):
    """Prints the traceback without the frames of these files, and tells pipe what was raised."""
    import traceback

    frames = error.__traceback__
    while frames and os.path.basename(frames.tb_frame.f_code.co_filename) in SHIM:
        frames = frames.tb_next
    sys.stdout.flush()
    doing = getattr(error, "while_doing", "")
    if isinstance(error, StepError):
        print(f"{type(error).__name__}: {error}" + (f" ({doing})" if doing else ""), file=sys.stderr)
    else:
        traceback.print_exception(type(error), error, frames)
    at = [doing] if doing else []
    if frames:
        own = [frame for frame in traceback.extract_tb(frames) if os.path.basename(frame.filename) not in SHIM]
        last = [frame for frame in own if os.sep + "lib" + os.sep not in frame.filename][-1:]
        at += [f"{frame.filename}:{frame.lineno}, in {frame.name}" for frame in last]
    causes, cause = [], error.__cause__
    while cause is not None and len(causes) < 20:
        causes.append({"type": type(cause).__qualname__, "message": str(cause)})
        cause = cause.__cause__
    failure = {"type": type(error).__qualname__, "message": str(error), "how": "raised", "where": ", ".join(at), "causes": causes}
    if path := os.environ.get("PIPE_FAILURE_FILE"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(failure, file)
