"""The code of a step: a function, and what it uses of its module.

A step's key covers its code. So that an edit of another step in the same file changes nothing, a step gets a
file with its function alone, and the imports, constants, classes and functions of the module that it uses,
found by the names in the source. Modules of the project that it imports travel as whole files, which pipe finds.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from ._errors import PipelineError, Place, did_you_mean

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_BUILTINS = set(dir(builtins)) | {"__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__"}
_DECORATORS = ("step", "pipeline")


class Statement:
    """A statement at the top of a module, with the names that it binds and uses."""

    def __init__(self, node: ast.stmt, lines: List[str], pipe_names: Set[str], module: str, is_package: bool) -> None:
        self.node = node
        self.lines = lines
        self.pipe_names = pipe_names
        self.module = module
        self.is_package = is_package
        self.binds: Set[str] = set()
        self.uses: Set[str] = set()
        self.calls_methods_of: Set[str] = set()  # TABLE of TABLE.append(3), also within for, with and if
        self.decorators: Set[str] = set()  # names of others than pipe_ml's
        self.puts_into: Set[str] = set()  # TABLE of a function with TABLE.append(x) or TABLE[name] = x
        self.is_expression = isinstance(node, ast.Expr)
        self._read()

    def _read(self) -> None:
        node = self.node
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.binds = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            return
        nodes: List[ast.AST] = [node]
        if isinstance(node, (*_Function, ast.ClassDef)):
            self.binds.add(node.name)
            ours = [each for each in node.decorator_list if self.is_of_pipe(each)]
            self.decorators = {_root(each) for each in node.decorator_list if each not in ours}
            if isinstance(node, _Function):
                self._read_function(node, ours)
                self.puts_into = _filled_by(node)
                nodes = []
            else:
                nodes = [child for child in ast.iter_child_nodes(node) if child not in ours]
            for decorator in node.decorator_list:
                self._bind_codec(decorator)
        elif isinstance(node, ast.Expr):
            self._bind_codec(node.value)
        for each in nodes:
            self._read_names(each, is_top=each is node)

    def _read_names(self, tree: ast.AST, is_top: bool) -> None:
        for each in ast.walk(tree):
            if isinstance(each, ast.Name):
                self.uses.add(each.id)
                if is_top and isinstance(each.ctx, (ast.Store, ast.Del)):
                    self.binds.add(each.id)
            elif isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, (ast.Store, ast.Del)) and is_top:
                root = _root(each)
                if root:
                    self.binds.add(root)
            elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and isinstance(each.value.func, ast.Attribute) and is_top:
                self.calls_methods_of.add(_root(each.value))
            elif isinstance(each, (ast.Import, ast.ImportFrom)) and is_top:
                self.binds |= {(alias.asname or alias.name).split(".")[0] for alias in each.names}
            elif isinstance(each, (*_Function, ast.ClassDef)) and is_top:
                self.binds.add(each.name)
            self.uses |= _quoted_names(each)

    def _read_function(self, node: Any, ours: List[ast.expr]) -> None:
        """Reads a function's names, without those that are its own variables."""
        outside = [each for each in node.decorator_list if each not in ours]
        outside += [each for each in (*node.args.defaults, *node.args.kw_defaults, node.returns) if each is not None]
        outside += [each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg) and each.annotation is not None]
        declared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        waiting: List[ast.AST] = list(node.body)
        while waiting:  # the function's own scope: not that of functions, classes and comprehensions in it
            each = waiting.pop()
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                own.add(each.id)
            if not isinstance(each, (*_Function, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                waiting += ast.iter_child_nodes(each)
        for each in node.body:
            self._read_names(each, is_top=False)
        self.uses -= own - declared
        for each in outside:
            self._read_names(each, is_top=False)
        for each in ast.walk(node.args):
            self.uses |= _quoted_names(each)
        self.uses |= _quoted_names(node)

    def _bind_codec(self, call: ast.expr) -> None:
        """Binds ``@pl.codec(Tree, ".tree")`` to the name Tree, so that code with the class has its codec too."""
        if isinstance(call, ast.Call) and _last(call.func) == "codec" and _root(call.func) in self.pipe_names and call.args:
            self.binds.add(_root(call.args[0]))

    def is_of_pipe(self, decorator: ast.expr) -> bool:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Call):
            return self.is_of_pipe(target)
        return _root(target) in self.pipe_names and (isinstance(target, ast.Name) or _last(target) in _DECORATORS)

    @property
    def is_main_block(self) -> bool:
        return isinstance(self.node, ast.If) and any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(self.node.test))

    @property
    def is_star(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and self.node.names[0].name == "*"

    @property
    def is_future(self) -> bool:
        return isinstance(self.node, ast.ImportFrom) and self.node.module == "__future__"

    def text(self, wanted: Set[str]) -> str:
        """Returns the statement; of an import, only the names that are wanted."""
        node = self.node
        if isinstance(node, ast.Import):
            return "\n".join(f"import {_alias(each)}" for each in node.names if (each.asname or each.name).split(".")[0] in wanted)
        if isinstance(node, ast.ImportFrom):
            names = [each for each in node.names if self.is_star or self.is_future or (each.asname or each.name) in wanted]
            return f"from {self._absolute(node)} import {', '.join(map(_alias, names))}"
        body = "\n".join(self._lines())
        if not isinstance(node, (*_Function, ast.ClassDef)):
            return body
        kept = [each for each in node.decorator_list if not self.is_of_pipe(each)]
        decorators = ["@" + "\n".join(self.lines[each.lineno - 1:each.end_lineno]).strip().lstrip("@").strip() for each in kept]
        return "\n".join([*decorators, body])

    def _lines(self) -> List[str]:
        """Returns the statement's lines, with absolute imports in place of relative ones: the code lies in another folder."""
        first = self.node.lineno - 1
        lines = self.lines[first:self.node.end_lineno]
        for each in ast.walk(self.node):
            if isinstance(each, ast.ImportFrom) and each.level:
                line = self.lines[each.lineno - 1].encode()
                before, statement = line[:each.col_offset].decode(), line[each.col_offset:].decode()
                lines[each.lineno - 1 - first] = before + re.sub(r"^from\s*\.[.\s]*[\w.]*?\s*\bimport\b", f"from {self._absolute(each)} import", statement)
        return lines

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        base = parts[:len(parts) - node.level + (1 if self.is_package else 0)]
        return ".".join([*base, *([node.module] if node.module else [])])


def _quoted_names(node: ast.AST) -> Set[str]:
    """Returns the names in quoted annotations: of an argument, a variable or a function's result."""
    annotation = getattr(node, "annotation", None) if isinstance(node, (ast.arg, ast.AnnAssign)) else getattr(node, "returns", None)
    names: Set[str] = set()
    waiting = [annotation] if annotation is not None else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            try:
                names |= {part.id for part in ast.walk(ast.parse(each.value.strip(), mode="eval")) if isinstance(part, ast.Name)}
            except SyntaxError:
                continue
        elif isinstance(each, ast.Subscript) and _last(each.value) == "Annotated":
            inner = getattr(each.slice, "value", each.slice) if type(each.slice).__name__ == "Index" else each.slice
            waiting += inner.elts[:1] if isinstance(inner, ast.Tuple) else [inner]
        elif not (isinstance(each, ast.Subscript) and _last(each.value) == "Literal"):
            waiting += ast.iter_child_nodes(each)
    return names


def _alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _filled_by(function: ast.AST) -> Set[str]:
    """Returns the names of the containers into which the function, or one within it, puts something."""
    names = set()
    for each in ast.walk(function):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in ("append", "appendleft", "add", "insert", "setdefault"):
            names.add(_root(each.func))
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            names.add(_root(each))
    return names


class ModuleSource:
    """A module's statements; ``code_of`` makes the file of one of its functions."""

    def __init__(self, text: str, module: str, file: str, is_package: bool = False) -> None:
        self.text = text
        self.module = module
        self.file = file
        self.tree = ast.parse(text)
        lines = text.splitlines()
        self.pipe_names = _names_of_pipe(self.tree)
        self.statements = [Statement(node, lines, self.pipe_names, module, is_package) for node in self.tree.body]
        kinds = (*_Function, ast.ClassDef, ast.Import, ast.ImportFrom)
        assigned = {name for each in self.statements if not isinstance(each.node, kinds) for name in each.binds} - self.pipe_names
        for statement in self.statements:  # TABLE.append(3) makes the value of TABLE, as an assignment does
            statement.binds |= statement.calls_methods_of & assigned
        filled = {each.node.name: each.puts_into & assigned for each in self.statements if isinstance(each.node, _Function)}
        for statement in self.statements:  # and so does @register, whose function has TABLE.append(function)
            for decorator in statement.decorators:
                statement.binds |= filled.get(decorator, set())
        self.by_name: Dict[str, List[int]] = {}
        for i, statement in enumerate(self.statements):
            if not statement.is_main_block:
                for name in statement.binds:
                    self.by_name.setdefault(name, []).append(i)
        self.bound_by_main = {name for each in self.statements if each.is_main_block for name in each.binds}
        self.has_star = any(each.is_star for each in self.statements)
        self._codes: Dict[str, str] = {}

    def definition(self, name: str) -> Optional[ast.stmt]:
        """Returns the function's or class's last definition at the top of the module."""
        for i in reversed(self.by_name.get(name, [])):
            node = self.statements[i].node
            if isinstance(node, (*_Function, ast.ClassDef)) and node.name == name:
                return node
        return None

    def code_of(self, function: str) -> str:
        """Returns the source of the function and of all that it uses."""
        if function not in self._codes:
            self._codes[function] = self._collect(function)
        return self._codes[function]

    def line_of(self, function: str, code: List[str], line: int) -> int:
        """Returns the module's line for a line of ``code``, the function's own file; 0 if it cannot be told."""
        if not 0 < line <= len(code):
            return 0
        wanted, lines = code[line - 1], self.text.splitlines()
        found = [i + 1 for i, each in enumerate(lines) if each == wanted]
        node = self.definition(function)
        inside = [i for i in found if node is not None and node.lineno <= i <= (node.end_lineno or i)]
        return inside[0] if len(inside) == 1 else found[0] if len(found) == 1 else 0

    def _collect(self, function: str) -> str:
        taken, wanted = self._reach({function}, set())
        while True:  # statements that only configure what is used: np.random.seed(0), TABLE.append(3)
            more = {i for i, each in enumerate(self.statements) if each.is_expression and i not in taken and self._configures(each, wanted)}
            if not more:
                break
            taken |= more
            for i in more:
                taken, wanted = self._reach(self.statements[i].uses, taken, wanted)
        always = {i for i, each in enumerate(self.statements) if each.is_future or each.is_star}
        parts = [self.statements[i].text(wanted) for i in sorted(taken | always)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _reach(self, names: Set[str], taken: Set[int], wanted: Optional[Set[str]] = None) -> Tuple[Set[int], Set[str]]:
        """Adds the statements that bind the names, and what those use, to ``taken``, and the names to ``wanted``."""
        wanted = set() if wanted is None else wanted
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name in wanted:
                continue
            wanted.add(name)
            for i in self.by_name.get(name, []):
                if i not in taken:
                    taken.add(i)
                    statement = self.statements[i]
                    waiting += statement.uses
                    if not isinstance(statement.node, (ast.Import, ast.ImportFrom)):
                        wanted |= statement.binds - set(self.by_name)
        return taken, wanted

    def _configures(self, statement: Statement, wanted: Set[str]) -> bool:
        names = {name for name in statement.uses if name in self.by_name}
        return bool(names) and names <= wanted and isinstance(statement.node, ast.Expr) and isinstance(statement.node.value, ast.Call) \
            and statement.uses <= wanted | _BUILTINS and _root(statement.node.value) in names and _root(statement.node.value) not in self.pipe_names

    def unknown_names(self, function: str) -> Iterator[Tuple[str, int]]:
        """Yields names that the function uses and nothing binds, with their lines."""
        node = self.definition(function)
        if node is None or self.has_star or not isinstance(node, _Function):
            return
        local = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
        local |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        local |= {each.name for each in ast.walk(node) if isinstance(each, (*_Function, ast.ClassDef))}
        local |= {each.name for each in ast.walk(node) if isinstance(each, ast.ExceptHandler) and each.name}
        local |= {(alias.asname or alias.name).split(".")[0] for each in ast.walk(node) if isinstance(each, (ast.Import, ast.ImportFrom)) for alias in each.names}
        local |= {each.name for each in ast.walk(node) if type(each).__name__ in ("MatchAs", "MatchStar", "TypeVar") and each.name}  # type: ignore[attr-defined]
        local |= {each.rest for each in ast.walk(node) if type(each).__name__ == "MatchMapping" and each.rest}  # type: ignore[attr-defined]
        for part in node.body:
            for each in ast.walk(part):
                if isinstance(each, ast.Name) and each.id not in local and each.id not in self.by_name and each.id not in _BUILTINS:
                    yield each.id, each.lineno


def _names_of_pipe(tree: ast.Module) -> Set[str]:
    """Returns the names under which the module knows pipe_ml and its decorators."""
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            names |= {alias.asname or alias.name for alias in each.names if alias.name == "pipe_ml"}
        elif isinstance(each, ast.ImportFrom) and each.module == "pipe_ml":
            names |= {alias.asname or alias.name for alias in each.names if alias.name in (*_DECORATORS, "codec")}
    return names


_modules: Dict[Tuple[str, str], Tuple[Any, ModuleSource]] = {}


def module_name(function: Callable[..., Any]) -> str:
    """Returns the name of the function's module; for a script, the name of its file."""
    name = function.__module__
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None and main.__spec__ is not None:
        return main.__spec__.name  # python -m package.module
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else "notebook"


def source_of(function: Callable[..., Any]) -> ModuleSource:
    """Returns the source of the function's module, read once for each of its versions."""
    name = module_name(function)
    module = sys.modules.get(function.__module__)
    file = function.__code__.co_filename
    from . import _notebook

    if (cells := _notebook.cells_of(function)) is not None:
        return ModuleSource(cells, "notebook", file)
    try:
        state: Any = os.stat(file).st_mtime_ns
        known = _modules.get((name, file))
        if known is None or known[0] != state:
            with open(file, encoding="utf-8") as stream:
                text = stream.read()
            is_package = os.path.basename(getattr(module, "__file__", None) or "") == "__init__.py"
            known = _modules[name, file] = (state, ModuleSource(text, name, file, is_package))
        return known[1]
    except (OSError, SyntaxError) as error:
        raise PipelineError(f"the source of {function.__qualname__} cannot be read: {error}", place_of(function),
                            "a step's function stands in a file, or in a cell of a notebook") from None


def place_of(function: Callable[..., Any]) -> Place:
    code = function.__code__
    return Place(code.co_filename, code.co_firstlineno)


def check_function(function: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """Returns the function below its decorators; raises where it cannot run by itself in another process."""
    unwrapped = inspect.unwrap(function)
    if not inspect.isfunction(unwrapped):
        kind = "class" if inspect.isclass(unwrapped) else type(unwrapped).__name__
        raise PipelineError(f"a step is a function, and this is a {kind}", place, "write a function at the top of a module that calls it")
    if inspect.isgeneratorfunction(unwrapped) or inspect.isasyncgenfunction(unwrapped):
        raise PipelineError(f"'{unwrapped.__name__}' is a generator, whose values exist only while they are taken", place, "return them as a list")
    if unwrapped.__name__ == "<lambda>":
        raise PipelineError("a lambda cannot be a step: it has no name to find its code by", place, "write it as a function at the top of the module")
    if unwrapped.__closure__:
        names = ", ".join(unwrapped.__code__.co_freevars)
        raise PipelineError(f"the function '{unwrapped.__name__}' uses {names} of the function around it, which no key would cover", place,
                            "move it to the top of the module, and pass these values as arguments")
    if "<locals>" in unwrapped.__qualname__:
        raise PipelineError(f"the function '{unwrapped.__name__}' is defined inside of another one, where its code cannot be found", place,
                            "move it to the top of the module")
    if "." in unwrapped.__qualname__:
        raise PipelineError(f"'{unwrapped.__qualname__}' is a method, and a step has no object to call it on", place,
                            "write a function at the top of the module that makes the object and calls it")
    return unwrapped


def check_names(function: Callable[..., Any]) -> None:
    """Raises for a name that the function uses and its module does not define at the top."""
    source = source_of(function)
    if source.definition(function.__name__) is None:
        raise PipelineError(f"the function '{function.__name__}' is not defined at the top of {os.path.basename(source.file)}", place_of(function),
                            "a step's function, with its `def`, stands at the top of a module, not in a block")
    for name, line in source.unknown_names(function.__name__):
        where = "is bound only in the block `if __name__ == ...`, which a step does not execute" if name in source.bound_by_main else "is not defined in its module"
        raise PipelineError(f"'{function.__name__}' uses '{name}', which {where}", Place(source.file, line), did_you_mean(name, source.by_name))
