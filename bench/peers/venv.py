"""Peers from PyPI live in virtual environments of their own, in a cache folder, installed once."""

import os
import subprocess
import sys
from pathlib import Path

from model import Absent

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipe-bench"


def ensure_venv(requirement: str, program: str) -> Path:
    """Returns the `bin` folder of the environment with `requirement`, and makes the environment if it is missing."""
    folder = CACHE / requirement.replace("[", "-").replace("]", "")
    if not (folder / "complete").exists():
        print(f"bench: installing {requirement} in {folder}", file=sys.stderr)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], [str(folder / "bin/pip"), "install", "--quiet", requirement]):
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no message"]
                raise Absent(f"`{' '.join(command[-3:])}` failed: {last[0]}")
        (folder / "complete").touch()
    if not (folder / "bin" / program).exists():
        raise Absent(f"{requirement} brings no program {program}")
    return folder / "bin"


def first_line(argv: list[str], **options) -> str:
    """Returns the first line that a version command prints; raises Absent if the command cannot be run."""
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=True, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Absent(str(error)) from error
    return result.stdout.strip().splitlines()[0]
