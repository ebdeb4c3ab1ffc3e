"""Annotations of a step's function: read even where a package that they name is only in the step's image."""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ._errors import PipelineError, did_you_mean
from ._source import place_of, source_of
from .pipe_records import absent, fields_of
from .pipe_types import annotations_in, form_of, is_record, name_of, origin_of, read_annotation, sources

_absent_classes: Dict[Tuple[str, str], type] = {}


def absent_class(package: str, name: str) -> type:
    """Returns a class in place of one whose package is not installed here."""
    key = package, name
    if key not in _absent_classes:
        bases: Tuple[type, ...] = ()
        # The codecs of pipe_values know scikit-learn's classes by this base.
        if package.split(".")[0] == "sklearn" and name != "BaseEstimator":
            bases = (absent_class("sklearn.base", "BaseEstimator"),)
        _absent_classes[key] = type(name, bases, {"__module__": package, "__class_getitem__": classmethod(lambda cls, _: cls)})
    return _absent_classes[key]


class _AbsentModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return absent_class(self._name, name) if name[:1].isupper() or name == "ndarray" else _AbsentModule(f"{self._name}.{name}")


def _stand_in(module: str, name: str) -> Any:
    return absent_class(module, name) if name else _AbsentModule(module)


absent.append(_stand_in)  # read_annotation() calls it for a package that is not installed here


@functools.lru_cache(maxsize=None)
def annotations_of(function: Callable[..., Any]) -> Dict[str, Any]:
    """Returns the annotation of each argument and of the result; raises for one whose names nothing defines."""
    found = annotations_in(function)
    if any("'" in repr(each) for each in found.values()):
        sources[function.__module__] = source_of(function).text
    read = {name: read_annotation(each, function.__module__, function.__globals__) for name, each in found.items()}
    for name, each in read.items():
        if isinstance(each, str):
            what = "the result" if name == "return" else f"the argument '{name}'"
            raise PipelineError(f"the annotation of {what} of '{function.__name__}', '{each}', cannot be read", place_of(function), _unread(each, function))
    return read


def _unread(text: str, function: Callable[..., Any]) -> str:
    """Returns the advice for an annotation that cannot be read."""
    names = re.findall(r"\w+", text)
    known = [*function.__globals__, *vars(builtins)]
    unknown = next((each for each in names if each not in known), "")
    return did_you_mean(unknown, known) or "define its names at the top of the module, or import them there, below `if TYPE_CHECKING:` if need be"


def outputs_of(annotation: Any) -> List[Tuple[str, Any]]:
    """Returns (name, annotation) of each output; empty for a function without a result."""
    if annotation is None or annotation is type(None):
        return []
    origin, arguments = origin_of(annotation)
    if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):
        return list(fields_of(origin).items())
    if origin is tuple and arguments and arguments[-1] is not Ellipsis and arguments != ((),):
        named = [output_name(each) for each in arguments]
        return [(name or f"result{i + 1}", each) for i, (name, each) in enumerate(zip(named, arguments))]
    return [(output_name(annotation) or "result", annotation)]


def output_name(annotation: Any) -> str:
    """Returns the name in ``Annotated[DataFrame, "name"]``, as ZenML has it."""
    return next((each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, str)), "")


def is_list(annotation: Any) -> bool:
    origin, _ = origin_of(annotation)
    return getattr(origin, "__name__", "") in ("list", "Sequence", "Iterable", "Collection", "List")


def item_of(annotation: Any) -> Any:
    arguments = origin_of(annotation)[1]
    return arguments[0] if arguments else None


def fits(made: Any, taken: Any) -> bool:
    """Returns whether a value of one type can be an argument of the other, as far as the annotations say."""
    first, second = form_of(made), form_of(taken)
    if "any" in (first[0], second[0]) and not (_bare(made) or _bare(taken)):
        return True
    if first[0] == "union":
        return all(fits(each, taken) for each in first[2])
    if second[0] == "union":
        return any(fits(made, each) for each in second[2])
    if first[0] == "literal":
        return second[0] == "literal" and set(first[2]) <= set(second[2]) or all(fits(type(each), taken) for each in first[2])
    a, b = first[1], second[1]
    if a is int and b is float or a is b and (not first[2] or not second[2]):
        return True
    if a is b or (is_list(made) and is_list(taken)):
        return len(first[2]) == len(second[2]) and all(map(_fits_part, first[2], second[2]))
    if isinstance(a, type) and isinstance(b, type):
        if a in (list, tuple, dict) and is_list(taken) and a is not dict:
            return True
        return _is_below(a, b) or (a.__name__ == b.__name__ and a.__module__.split(".")[0] == b.__module__.split(".")[0] and not is_record(a))
    return isinstance(made, str) or isinstance(taken, str) or name_of(made) == name_of(taken)


def _fits_part(made: Any, taken: Any) -> bool:
    return made is Ellipsis or taken is Ellipsis or not isinstance(made, (type, str)) and not hasattr(made, "__origin__") or fits(made, taken)


def _bare(annotation: Any) -> bool:
    return annotation in (list, dict, tuple)


def _is_below(a: type, b: type) -> bool:
    try:
        return issubclass(a, b) and not (a is bool and b in (int, float))
    except TypeError:
        return True


@functools.lru_cache(maxsize=None)
def parameters_of(function: Callable[..., Any]) -> Sequence[Any]:
    """Returns the parameters of a function, as `inspect` has them."""
    return list(signature_of(function).parameters.values())


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Returns the signature of a function; Python 3.14 would evaluate annotations that only type checkers can read."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(function)
