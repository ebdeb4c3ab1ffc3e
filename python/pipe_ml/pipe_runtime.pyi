from pathlib import Path
from typing import Any, List, Optional, Tuple

SHIM: Tuple[str, ...]

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

def rank() -> int:
    """Returns the number of this process, from 0, among all of a step with ``nodes``. Results are those of the first process of a node."""

def world_size() -> int:
    """Returns the number of those processes."""

def local_rank() -> int:
    """Returns the number of this process among those of its node."""

def node_rank() -> int:
    """Returns the number of this process's node."""

def addresses() -> List[str]:
    """Returns the addresses of all nodes, in order; none for a step without ``nodes``."""

def barrier() -> None:
    """Returns once all processes of the step have called it equally often. The attempt ends with the first that fails."""

def report_failure(error: BaseException) -> None: ...
