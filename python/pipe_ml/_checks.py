"""Problems that `pipe validate` finds in the document, at the lines of Python that wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from . import _program
from ._document import Document
from ._errors import PipelineError


def check(path: str, document: Document, paths: Sequence[Tuple[str, ...]]) -> None:
    """Raises one PipelineError for all problems, each with its place."""
    words = [_program.find(), "validate", path, "--output", "json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        return
    problems = diagnostics(done.stdout)
    if not problems:
        raise PipelineError(done.stderr.decode(errors="replace").strip() or f"`pipe validate` ended with exit code {done.returncode}")
    raise gathered([at_place(each, path, document, paths) for each in problems])


def diagnostics(output: bytes) -> List[Dict[str, Any]]:
    for line in reversed(output.decode(errors="replace").splitlines()):
        try:
            return [each for each in json.loads(line).get("diagnostics", []) if each["severity"] == "error"]
        except ValueError:
            continue
    return []


def at_place(found: Mapping[str, Any], path: str, document: Document, paths: Sequence[Tuple[str, ...]]) -> PipelineError:
    line = found.get("line", 0)
    is_ours = os.path.abspath(found.get("file", path)) == os.path.abspath(path)
    place = document.place_of(paths[line - 1]) if is_ours and 0 < line <= len(paths) else document.places[""]
    return PipelineError(found["message"], place, found.get("suggestion", ""), found.get("notes", ()))


def gathered(errors: List[PipelineError]) -> PipelineError:
    errors[0].others = errors[1:]
    return errors[0]


def parameters_file(values: Mapping[str, Any]) -> str:
    """Writes values to a file for `--params`, and returns its path."""
    handle, path = tempfile.mkstemp(prefix="pipe-parameters-", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(values, file)
    return path
