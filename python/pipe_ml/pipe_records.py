"""Dataclasses, enums, unions, dates and the like as JSON and back; annotations in quotes.

A copy of this file travels with the code of each function step, for any Python from 3.8. pipe_types.py loads
it in a step with such a type.
"""

import sys

if __package__:
    from .pipe_types import StepError, a, annotations_in, from_plain, mismatch, name_of, origin_of, read_annotation, sources, to_plain
else:
    from pipe_types import StepError, a, annotations_in, from_plain, mismatch, name_of, origin_of, read_annotation, sources, to_plain

absent = []  # what stands for a class that cannot be imported, as a function of its package and name


class Names(dict):
    """Names of a module: those that it has, and those that it imports for type checkers only."""

    def __init__(self, module, namespace):
        super().__init__()
        self.module = module
        self.namespace = namespace

    def __missing__(self, name):
        import ast
        import builtins

        for known in (self.namespace, vars(builtins)):
            if name in known:
                return known[name]
        for node in ast.walk(ast.parse(sources.get(self.module, ""))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    if (alias.asname or alias.name.split(".")[0]) == name:
                        if isinstance(node, ast.ImportFrom):
                            return self.imported("." * node.level + (node.module or ""), alias.name)
                        return self.imported(alias.name if alias.asname else name, "")
        raise NameError(f"name '{name}' is not defined")

    def imported(self, module, name):
        import importlib

        try:
            made = importlib.import_module(module, self.namespace.get("__package__"))
            return getattr(made, name) if name else made
        except (ImportError, AttributeError):
            if not absent:
                raise
            return absent[0](module, name)


def read_quoted(text, module, namespace):
    """Returns what the text means where the module's own names are not all that it needs; the text where nothing tells."""
    try:
        return eval(text, {}, Names(module, namespace))
    except Exception:
        return text


def read_parts(annotation, module, namespace):
    """Returns a type such as ``list["Model"]`` with its parts read."""
    if str(getattr(annotation, "__origin__", "")) == "typing.Literal":
        return annotation
    parts = tuple(read_annotation(each, module, namespace) for each in annotation.__args__)
    if all(part is each for part, each in zip(parts, annotation.__args__)):
        return annotation
    if hasattr(annotation, "copy_with"):
        return annotation.copy_with(parts)
    return annotation.__origin__[parts]


def fields_of(kind):
    """Returns the types of the fields of a dataclass, NamedTuple or TypedDict, by name."""
    import typing

    try:
        hints = typing.get_type_hints(kind, **({"include_extras": True} if sys.version_info >= (3, 9) else {}))
    except Exception:  # a name that only a type checker sees
        hints = {}
        for each in reversed(kind.__mro__):
            own = annotations_in(each) if sys.version_info >= (3, 10) else each.__dict__.get("__annotations__", {})
            namespace = vars(sys.modules[each.__module__]) if each.__module__ in sys.modules else {}
            hints.update({field: read_annotation(made, each.__module__, namespace) for field, made in own.items()})
    if hasattr(kind, "__dataclass_fields__"):
        names = [name for name, field in kind.__dataclass_fields__.items() if field._field_type.name == "_FIELD" and field.init]
    else:
        names = getattr(kind, "_fields", None) or list(hints)
    return {name: hints.get(name) for name in names}


def _union_to(value, annotation, _origin, arguments, at, depth):
    return _first(arguments, annotation, value, at, lambda each: to_plain(value, each, at, depth))


def _first(arguments, annotation, value, at, convert):
    # A bool is also an int, and an int is taken for a float: the exact type comes first.
    for each in sorted(arguments, key=lambda each: type(value) is not origin_of(each)[0]):
        try:
            return convert(each)
        except (StepError, ValueError, TypeError, KeyError):
            continue
    raise mismatch(at, annotation, value)


def _literal(value, annotation, _origin, arguments, at, _depth=0):
    if any(type(each) is type(value) and each == value for each in arguments):
        return value
    raise mismatch(at, annotation, value)


def _is_flag(origin):
    from enum import Flag

    return issubclass(origin, Flag)


def _enum_to(value, annotation, origin, _arguments, at, _depth):
    if isinstance(value, origin) and value.name in origin.__members__:
        return value.name
    if isinstance(value, origin) and _is_flag(origin):
        names, left = [], value.value
        for name, each in origin.__members__.items():
            if each.value and left & each.value == each.value:
                names.append(name)
                left &= ~each.value
        if left == 0:
            return "|".join(names)
    raise mismatch(at, annotation, value)


def _record_to(value, annotation, origin, _arguments, at, depth):
    hints = fields_of(origin)
    if hasattr(origin, "__total__"):
        if not isinstance(value, dict):
            raise mismatch(at, annotation, value)
        _no_others(value, hints, origin, at)
        return {key: to_plain(part, hints[key], f"{at}[{key!r}]", depth) for key, part in value.items()}
    if not isinstance(value, origin):
        raise mismatch(at, annotation, value)
    if type(value) is not origin:
        raise StepError(f"{at or 'the value'} is {a(name_of(type(value)))}, and only the fields of {name_of(origin)} would be stored: annotate it as {name_of(type(value))}")
    return {name: to_plain(getattr(value, name), each, f"{at}.{name}", depth) for name, each in hints.items()}


def _no_others(value, hints, origin, at):
    for key in value:
        if key not in hints:
            raise StepError(f"{at or 'the value'} has {key!r}, which {name_of(origin)} lacks")


def _time_to(value, annotation, origin, _arguments, at, _depth):
    if type(value) is origin:
        return value.isoformat()
    raise mismatch(at, annotation, value)


def _text_to(value, annotation, origin, _arguments, at, _depth):
    if isinstance(value, origin):
        return str(value)
    raise mismatch(at, annotation, value)


TO = {"union": _union_to, "literal": _literal, "enum": _enum_to, "record": _record_to, "time": _time_to, "text": _text_to}


def _union_from(value, annotation, _origin, arguments, at):
    return _first(arguments, annotation, value, at, lambda each: from_plain(value, each, at))


def _enum_from(value, annotation, origin, _arguments, at):
    if isinstance(value, str) and value in origin.__members__:
        return origin[value]
    if isinstance(value, str) and _is_flag(origin):
        names = value.split("|") if value else []
        if all(name in origin.__members__ for name in names):
            whole = origin(0)
            for name in names:
                whole |= origin[name]
            return whole
    raise mismatch(at, annotation, value)


def _record_from(value, annotation, origin, _arguments, at):
    if not isinstance(value, dict):
        raise mismatch(at, annotation, value)
    hints = fields_of(origin)
    _no_others(value, hints, origin, at)
    parts = {name: from_plain(part, hints[name], f"{at}.{name}") for name, part in value.items()}
    try:
        return origin(**parts)
    except TypeError as error:  # a field without a default is missing
        raise StepError(f"{at or 'the value'} is not {a(name_of(origin))}: {error}") from error


def _time_from(value, annotation, origin, _arguments, at):
    try:
        return origin.fromisoformat(value)
    except (TypeError, ValueError):
        raise mismatch(at, annotation, value) from None


def _text_from(value, annotation, origin, _arguments, at):
    try:
        return origin(value)
    except (TypeError, ValueError, ArithmeticError):
        raise mismatch(at, annotation, value) from None


FROM = {"union": _union_from, "literal": _literal, "enum": _enum_from, "record": _record_from, "time": _time_from, "text": _text_from}
