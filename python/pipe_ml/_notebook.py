"""Notebooks: the code of cells, and how pipelines and runs are shown there."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional


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
    bound: set[str] = set()
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


def _names(node: Any) -> set[str]:
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
