"""Errors of a pipeline's declaration, at the user's line."""

from __future__ import annotations

import difflib
import os
import sys
import types
from typing import Iterable, List, NamedTuple, Optional, Type

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Place(NamedTuple):
    """A line of the user's Python."""

    file: str
    line: int
    column: int = 0


class PipelineError(Exception):
    """A mistake in a pipeline's declaration, with the line that made it and the likely fix."""

    def __init__(self, message: str, place: Optional[Place] = None, hint: str = "", notes: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint
        self.notes = list(notes)
        self.others: List[PipelineError] = []

    def __str__(self) -> str:
        at = f"{shown(self.place.file)}:{self.place.line}: " if self.place else ""
        lines = [f"{at}error: {self.message}"]
        if self.place and (source := source_line(self.place)):
            lines.append(f"    {source.strip()}")
        lines += [f"  note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(["\n".join(lines), *map(str, self.others)])

    def _render_traceback_(self) -> List[str]:
        """Shows the message alone in a notebook, without frames of this package."""
        return [str(self)]


class UnknownName(PipelineError, AttributeError):
    """A name that pipe_ml does not have."""


def _show_uncaught(kind: Type[BaseException], error: BaseException, trace: Optional[types.TracebackType]) -> None:
    """Prints an error of this package without frames: its message has the user's lines."""
    if hasattr(error, "_render_traceback_") and kind.__module__.startswith(__package__ or "pipe_ml"):
        sys.stdout.flush()
        print(error, file=sys.stderr)
    else:
        shown_trace = _without_ours(trace)
        _before(kind, error.with_traceback(shown_trace), shown_trace)


def _without_ours(trace: Optional[types.TracebackType]) -> Optional[types.TracebackType]:
    """Returns the traceback without the frames of this package, unless the error was raised in one of those."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    if not entries or entries[-1].tb_frame.f_code.co_filename.startswith(_HERE):
        return entries[0] if entries else None
    kept: Optional[types.TracebackType] = None
    for each in reversed(entries):
        if not each.tb_frame.f_code.co_filename.startswith(_HERE):
            kept = types.TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept


_before = sys.excepthook
sys.excepthook = _show_uncaught


def shown(file: str) -> str:
    """Returns the file relative to the working folder where it lies below it."""
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative


def source_line(place: Place) -> str:
    import linecache

    return linecache.getline(place.file, place.line)


def callers_place() -> Place:
    """Returns the line outside of this package that is being executed."""
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else Place("<unknown>", 0)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else ""
