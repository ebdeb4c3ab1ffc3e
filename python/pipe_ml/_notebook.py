"""Notebooks: the code of cells, and how pipelines and runs are shown there."""

from __future__ import annotations

import html
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional, Set

from . import _program

if TYPE_CHECKING:
    from ._pipeline import Pipeline
    from ._results import Run


def shell() -> Any:
    """Returns IPython's shell, or None outside of it."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


def cells_of(function: Callable[..., Any]) -> Optional[str]:
    """Returns the cells that were executed, as one source, for a function of a notebook; else None."""
    running = shell()
    if running is None or function.__module__ != "__main__" or not _is_cell(function.__code__.co_filename):
        return None
    return "\n".join(_latest(running.user_ns.get("In", [])))


def _is_cell(file: str) -> bool:
    return "ipykernel" in file or file.startswith("<ipython-input")


def _latest(cells: Any) -> Any:
    """Leaves out definitions that a later cell replaces."""
    import ast

    kept = []
    bound: Set[str] = set()
    for cell in reversed(cells):
        try:
            tree = ast.parse(cell)
        except SyntaxError:
            continue
        lines = cell.splitlines()
        statements = []
        for node in reversed(tree.body):
            names = _names(node)
            if names and names <= bound:
                continue
            bound |= names
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            statements.append("\n".join(lines[first - 1:node.end_lineno]))
        kept.append("\n".join(reversed(statements)))
    return reversed(kept)


def _names(node: Any) -> Set[str]:
    """Returns the names that a statement defines anew, whatever they were before."""
    import ast

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        return set() if names & used else names
    return set()


class Progress:
    """Shows the events of a run: lines in a terminal, one table in a notebook, nothing elsewhere unless asked for."""

    def __init__(self, name: str, show: Optional[bool]) -> None:
        self._name = name
        self._table = shell() is not None and "IPKernelApp" in getattr(shell(), "config", {}) and show is not False
        self._lines = not self._table and (sys.stderr.isatty() if show is None else show)
        self._states: Dict[str, str] = {}
        self._display: Any = None

    def event(self, event: Mapping[str, Any]) -> None:
        kind, step = event["event"], event.get("step", "")
        if kind == "step_started":
            self._states[step] = "running"
        elif kind == "step_finished":
            self._states[step] = "reused" if event["status"] == "cached" else event["status"]
        elif kind == "step_log" and self._lines:
            print(f"[{step}] {event['line']}", file=sys.stderr)
        if kind not in ("step_started", "step_finished", "run_finished"):
            return
        if self._lines:
            print(f"[{step}] {self._states[step]}" if step else f"{self._name} {event['status']}", file=sys.stderr)
        elif self._table:
            self._update()

    def _update(self) -> None:
        import importlib

        ipython: Any = importlib.import_module("IPython.display")
        shown = ipython.HTML(table(["step", "status"], self._states.items()))
        if self._display is None:
            self._display = ipython.display(shown, display_id=True)
        else:
            self._display.update(shown)


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{html.escape(head)}</th>' for head in heads)}</tr>{cells}</table>"


def run_table(run: Run) -> str:
    rows = [(name, step.status, ", ".join(f"{key} = {value:g}" for key, value in step.metrics.items())) for name, step in run.steps.items()]
    return f"<p>run {html.escape(run.id)} of {html.escape(run._pipeline.name)}: {html.escape(run.status)}</p>" + table(["step", "status", "metrics"], rows)


def pipeline_picture(pipeline: Pipeline[...]) -> str:
    """Returns the pipeline's graph as SVG, drawn by `pipe graph`."""
    done = subprocess.run([_program.find(), "graph", pipeline.write(), "--format", "svg"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.stdout.decode() if done.returncode == 0 else f"<pre>{html.escape(done.stderr.decode(errors='replace'))}</pre>"
