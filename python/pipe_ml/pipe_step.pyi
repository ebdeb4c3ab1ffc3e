from pathlib import Path
from typing import Any, List, Optional

from .pipe_types import StepError as StepError
from .pipe_values import Codec as Codec
from .pipe_values import FileName as FileName
from .pipe_values import Metrics as Metrics
from .pipe_values import Pickle as Pickle
from .pipe_values import codec as codec

def log(message: object, level: str = "info", **fields: Any) -> None:
    """Writes a line with fields to the step's log."""

def progress(fraction: float, message: str = "") -> None:
    """Reports how far the step is, from 0 to 1."""

def metric(name: str, value: float, step: Optional[int] = None) -> None:
    """Reports a metric of the run: a number, or a point of a series where ``step`` is given."""

def checkpoint() -> Path:
    """Returns the folder that survives the step's attempts until it succeeds."""

def stopping() -> bool:
    """Returns True once the step is asked to end, by Ctrl-C, a timeout or another step's failure."""

def main(words: List[str]) -> int: ...
