"""Finds the program `pipe`, which the wheel contains, and starts it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from typing import NoReturn, Sequence

from ._errors import PipelineError


def find() -> str:
    """Returns the program: $PIPE, else the one installed with this package, else the one on PATH."""
    if chosen := os.environ.get("PIPE"):
        return chosen
    folders = {sysconfig.get_path("scripts"), os.path.join(sys.prefix, "bin"), os.path.join(os.path.expanduser("~"), ".local", "bin")}
    for folder in folders:
        program = os.path.join(folder, "pipe")
        if os.access(program, os.X_OK):
            return program
    if found := shutil.which("pipe"):
        return found
    raise PipelineError("the program 'pipe' was not found, neither beside this Python nor on PATH", hint="install the wheel pipe-ml, or name the program in $PIPE")


def execute(words: Sequence[str]) -> NoReturn:
    """Replaces this process by the program, so that signals, the terminal and the exit code are the program's."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(find(), ["pipe", *words])
